package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// schemaURL is the name under which the compiler knows the schema at hand; nothing is ever loaded from it.
const schemaURL = "tool:///parameters"

// CheckTool returns an error that says why t cannot be offered to a model: it needs a name without surrounding white
// space or control characters (any other sign is legal; at most 256 bytes), a description, and parameters that are
// empty or a JSON Schema of an object that compiles without fetching anything.
func CheckTool(t *Tool) error {
	switch {
	case strings.TrimSpace(t.Name) == "":
		return errors.New("tool: the name is blank")
	case strings.TrimSpace(t.Name) != t.Name, !utf8.ValidString(t.Name), strings.ContainsFunc(t.Name, unicode.IsControl):
		return fmt.Errorf("tool %q: a name has no white space around it, no control characters and no invalid UTF-8", Cut(t.Name, maxName))
	case len(t.Name) > maxName:
		return fmt.Errorf("tool %q: the name has more than %d bytes", Cut(t.Name, 64), maxName)
	case strings.TrimSpace(t.Description) == "":
		return fmt.Errorf("tool %q: the description is blank", t.Name)
	}
	c := compile(t.Parameters)
	if c.err == nil && c.schema != nil && cyclic(c.check(map[string]any{})) {
		c.err = errors.New("the schema refers to itself without end")
	}
	if c.err != nil {
		return fmt.Errorf("tool %q: parameters: %w", t.Name, c.err)
	}
	return nil
}

// cyclic tells whether a check ended in a reference that leads back to itself for the same value.
func cyclic(err error) bool {
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return false
	}
	if _, ok := ve.ErrorKind.(*kind.RefCycle); ok {
		return true
	}
	return slices.ContainsFunc(ve.Causes, func(c *jsonschema.ValidationError) bool { return cyclic(c) })
}

// compile makes a schema ready for use. It trusts nothing about the text: a tool's definition comes over the network.
func compile(params JSONText) (c *compiled) {
	defer func() {
		if p := recover(); p != nil {
			c = &compiled{err: fmt.Errorf("the schema cannot be compiled: %v", p)}
		}
	}()
	doc, err := parseSchema(params)
	if err != nil || doc == nil {
		return &compiled{err: err}
	}
	comp := jsonschema.NewCompiler()
	comp.DefaultDraft(jsonschema.Draft2020)
	comp.UseLoader(noLoader{})
	comp.AssertFormat()
	if err := comp.AddResource(schemaURL, doc); err != nil {
		return &compiled{err: compileError(err)}
	}
	sch, err := comp.Compile(schemaURL)
	if err != nil {
		return &compiled{err: compileError(err)}
	}
	return &compiled{schema: sch, doc: doc, shape: shapeOf(doc)}
}

// parseSchema returns the schema as a value, nil if any object will do.
func parseSchema(params JSONText) (map[string]any, error) {
	text := strings.Trim(string(params), jsonSpace)
	if text == "" || text == "null" {
		return nil, nil
	}
	if len(text) > maxSchemaText {
		return nil, fmt.Errorf("the schema has %d bytes, at most %d are taken", len(text), maxSchemaText)
	}
	v, bad := parse(text)
	if bad != nil {
		return nil, fmt.Errorf("not valid JSON: at byte %d %s", bad.at, bad.msg)
	}
	doc, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a schema must be an object, got %s", kindOf(v))
	}
	if !takesObjects(doc["type"]) {
		return nil, fmt.Errorf("arguments are an object, the schema's type is %s", display(doc["type"]))
	}
	return doc, nil
}

func takesObjects(typ any) bool {
	switch t := typ.(type) {
	case nil:
		return true
	case string:
		return t == "object"
	case []any:
		for _, one := range t {
			if one == "object" {
				return true
			}
		}
	}
	return false
}

// noLoader refuses every URL: a schema must not make the process open files or connections.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("a schema may not refer to anything outside itself")
}

// compileError says in our words what is wrong with a schema, without the library's layout.
func compileError(err error) error {
	var bad *jsonschema.SchemaValidationError
	var ve *jsonschema.ValidationError
	if errors.As(err, &bad) && errors.As(bad.Err, &ve) {
		for len(ve.Causes) > 0 {
			ve = ve.Causes[0]
		}
		return fmt.Errorf("not a JSON Schema: at /%s: %s", strings.Join(ve.InstanceLocation, "/"), leafText(ve.ErrorKind))
	}
	return errors.New(Cut(strings.ReplaceAll(err.Error(), schemaURL, ""), maxText))
}

func leafText(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "expected " + strings.Join(k.Want, " or ") + ", got " + k.Got
	case *kind.Enum:
		return "expected " + oneOf(k.Want) + ", got " + display(k.Got)
	case *kind.Format:
		return "expected a valid " + k.Want + ", got " + display(k.Got)
	}
	return strings.Join(append([]string{"invalid"}, k.KeywordPath()...), " ")
}
