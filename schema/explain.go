package schema

import (
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Bounds of a message about arguments, which quotes what a model and a stranger's schema say.
const (
	maxText     = 2 << 10 // bytes of all problems
	maxProblems = 6
	maxQuoted   = 64 // bytes of a quoted key or value
	maxListed   = 8  // names or values in a list
)

// explainer turns the library's errors into problems in words that a model can act on.
type explainer struct {
	doc  any            // the schema
	args map[string]any // what was checked
}

// problem is one thing that is wrong. Far marks a value that is meant to tell alternatives apart, so that an
// alternative with such a problem is not the one that was meant.
type problem struct {
	text string
	far  bool
}

// explain returns the problems that err holds, sorted, since the library visits properties in random order.
func explain(err error, doc any, args map[string]any) string {
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return err.Error()
	}
	e := explainer{doc, args}
	var texts []string
	for _, p := range e.problems(ve) {
		texts = append(texts, p.text)
	}
	slices.Sort(texts)
	texts = slices.Compact(texts)
	if n := len(texts) - maxProblems; n > 0 {
		texts = append(texts[:maxProblems], fmt.Sprintf("and %d more problems", n))
	}
	return Cut(strings.Join(texts, "; "), maxText)
}

func (e *explainer) problems(ve *jsonschema.ValidationError) []problem {
	switch k := ve.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		return e.all(ve.Causes)
	case *kind.AnyOf:
		return e.closest(ve)
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			return e.closest(ve)
		}
		return e.one(ve, "fits more than one of the accepted forms, expected exactly one")
	case *kind.Required:
		return e.missing(ve, k.Missing, "")
	case *kind.DependentRequired:
		return e.missing(ve, k.Missing, k.Prop)
	case *kind.Dependency:
		return e.missing(ve, k.Missing, k.Prop)
	case *kind.AdditionalProperties:
		return e.unknown(ve, k.Properties)
	case *kind.Const, *kind.Enum:
		return []problem{{e.at(ve) + e.value(ve), true}}
	}
	return e.one(ve, e.value(ve))
}

func (e *explainer) all(causes []*jsonschema.ValidationError) []problem {
	var ps []problem
	for _, c := range causes {
		ps = append(ps, e.problems(c)...)
	}
	return ps
}

func (e *explainer) one(ve *jsonschema.ValidationError, text string) []problem {
	return []problem{{text: e.at(ve) + text}}
}

// closest reports on the alternative that was most likely meant: of those with the fewest values that tell
// alternatives apart wrong, the one with the fewest problems. Alternatives that are mere types are named together.
func (e *explainer) closest(ve *jsonschema.ValidationError) []problem {
	if want, ok := onlyTypes(ve); ok {
		return e.one(ve, e.typed(ve, want))
	}
	var best []problem
	bestCost := -1
	for _, c := range ve.Causes {
		ps := e.problems(c)
		cost := len(ps)
		for _, p := range ps {
			if p.far {
				cost += 1000
			}
		}
		if _, ok := c.ErrorKind.(*kind.Type); ok && len(c.InstanceLocation) == len(ve.InstanceLocation) {
			cost += 1000
		}
		if bestCost < 0 || cost < bestCost {
			best, bestCost = ps, cost
		}
	}
	for i := range best {
		best[i].text += fmt.Sprintf(" (the closest of %d accepted forms)", len(ve.Causes))
	}
	return best
}

// onlyTypes returns the types of alternatives that differ in nothing else.
func onlyTypes(ve *jsonschema.ValidationError) (want []string, ok bool) {
	for _, c := range ve.Causes {
		k, ok := c.ErrorKind.(*kind.Type)
		if !ok || len(c.InstanceLocation) != len(ve.InstanceLocation) {
			return nil, false
		}
		want = append(want, k.Want...)
	}
	return want, len(want) > 0
}

// missing reports properties that are not there, each with its type and the key that was probably meant for it.
func (e *explainer) missing(ve *jsonschema.ValidationError, names []string, because string) []problem {
	obj, _ := e.instance(ve.InstanceLocation).(map[string]any)
	known := e.known(ve)
	var strangers []string
	for k := range obj {
		if _, ok := known[k]; !ok && k != because {
			strangers = append(strangers, k)
		}
	}
	why := e.condition(ve)
	if because != "" {
		why = fmt.Sprintf(", wanted together with %s", quoted(because))
	}
	var ps []problem
	for _, name := range names {
		text := "missing property " + quoted(name) + e.expected(known[name]) + why
		near := nearest(name, strangers, 1, len(names) > 1 || len(strangers) > 1 || len(known) == 0)
		if len(near) > 0 {
			text += fmt.Sprintf(" (got %s instead)", quoted(near[0]))
		}
		ps = append(ps, problem{text: e.within(ve) + text})
	}
	return ps
}

// unknown reports properties that the schema does not have, each with the one that was probably meant.
func (e *explainer) unknown(ve *jsonschema.ValidationError, names []string) []problem {
	var known []string
	for k := range e.known(ve) {
		known = append(known, k)
	}
	slices.Sort(known)
	var ps []problem
	for _, name := range names {
		text := "unknown property " + quoted(name)
		switch near := nearest(name, known, 1, true); {
		case len(near) > 0:
			text += fmt.Sprintf(", did you mean %s?", quoted(near[0]))
		case len(known) > 0:
			text += ", expected " + list(known)
		default:
			text += ", expected no properties"
		}
		ps = append(ps, problem{text: e.within(ve) + text})
	}
	return ps
}

// known returns the properties of the object that ve is about: those of the schema it failed, and of the schema
// around it when that is a part of allOf, anyOf, oneOf, or if, then and else.
func (e *explainer) known(ve *jsonschema.ValidationError) map[string]any {
	known := make(map[string]any)
	for path, ok := schemaPath(ve.SchemaURL), true; ok; path, ok = outside(path) {
		node, _ := walk(e.doc, path).(map[string]any)
		props, _ := node["properties"].(map[string]any)
		for k, v := range props {
			if _, ok := known[k]; !ok || known[k] == true {
				known[k] = v
			}
		}
	}
	return known
}

// outside returns the path of the schema that applies the one at path to the same value; ok is false if none does.
func outside(path []string) (outer []string, ok bool) {
	n := len(path)
	switch {
	case n >= 1 && slices.Contains([]string{"then", "else", "if", "not"}, path[n-1]):
		return path[:n-1], true
	case n >= 2 && slices.Contains([]string{"allOf", "anyOf", "oneOf"}, path[n-2]):
		return path[:n-2], true
	}
	return nil, false
}

// condition says why the schema of ve applies, if that is a then or an else: the values that its if looks at.
func (e *explainer) condition(ve *jsonschema.ValidationError) string {
	path, ok := schemaPath(ve.SchemaURL), true
	for ok && !branch(path) {
		path, ok = outside(path)
	}
	if !ok {
		return ""
	}
	cond, _ := walk(e.doc, append(slices.Clone(path[:len(path)-1]), "if", "properties")).(map[string]any)
	obj, _ := e.instance(ve.InstanceLocation).(map[string]any)
	var parts []string
	for key := range cond {
		if v, ok := obj[key]; ok {
			parts = append(parts, quoted(key)+" is "+display(v))
		} else {
			parts = append(parts, quoted(key)+" is absent")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return ", wanted when " + strings.Join(parts, " and ")
}

// branch tells whether path ends at a then or an else.
func branch(path []string) bool {
	n := len(path)
	return n > 0 && (path[n-1] == "then" || path[n-1] == "else")
}

// expected describes a property's schema in brackets, by its type.
func (e *explainer) expected(schema any) string {
	node, _ := schema.(map[string]any)
	switch t := node["type"].(type) {
	case string:
		return " (" + Cut(t, maxQuoted) + ")"
	case []any:
		names := make([]string, len(t))
		for i, name := range t {
			names[i] = fmt.Sprint(name)
		}
		return " (" + Cut(strings.Join(names, " or "), maxQuoted) + ")"
	}
	return ""
}

// at returns "<path>: " of the value that ve is about, within "in <path>: " of the object; both "" at the root.
func (e *explainer) at(ve *jsonschema.ValidationError) string {
	if p := e.path(ve.InstanceLocation); p != "" {
		return quoted(p) + ": "
	}
	return ""
}

func (e *explainer) within(ve *jsonschema.ValidationError) string {
	if p := e.at(ve); p != "" {
		return "in " + p
	}
	return ""
}

// path writes a location as a model would: files[0].name.
func (e *explainer) path(loc []string) string {
	var b strings.Builder
	var v any = e.args
	for _, tok := range loc {
		if _, ok := v.([]any); ok {
			b.WriteString("[" + tok + "]")
		} else if b.Len() > 0 {
			b.WriteString("." + tok)
		} else {
			b.WriteString(tok)
		}
		v = walk(v, []string{tok})
	}
	return b.String()
}

func (e *explainer) instance(loc []string) any { return walk(e.args, loc) }

// walk follows tokens of a JSON pointer into v; nil where there is nothing.
func walk(v any, path []string) any {
	for _, tok := range path {
		switch c := v.(type) {
		case map[string]any:
			v = c[tok]
		case []any:
			i, err := strconv.Atoi(tok)
			if err != nil || i < 0 || i >= len(c) {
				return nil
			}
			v = c[i]
		default:
			return nil
		}
	}
	return v
}

// schemaPath returns the tokens of a schema's location within its document.
func schemaPath(location string) []string {
	_, frag, _ := strings.Cut(location, "#/")
	if frag == "" {
		return nil
	}
	path := strings.Split(frag, "/")
	for i, tok := range path {
		if plain, err := url.PathUnescape(tok); err == nil {
			tok = plain
		}
		path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(tok)
	}
	return path
}

// decimal writes a bound of a schema the way people write numbers.
func decimal(r *big.Rat) string {
	if r.IsInt() {
		return Cut(r.Num().String(), maxQuoted)
	}
	return Cut(strings.TrimRight(r.FloatString(9), "0"), maxQuoted)
}
