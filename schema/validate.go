package schema

import (
	"errors"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Validator checks arguments against the schemas of tools. It keeps compiled schemas, as many as fit two
// generations of maxSchemas; it is safe for concurrent use.
type Validator struct {
	mu       sync.RWMutex
	young    map[JSONText]*compiled // by the schema's text: a digest may be missing, or lie
	old      map[JSONText]*compiled
	youngLen int // bytes of schema text in young
}

const (
	maxSchemas     = 512     // schemas of a generation
	maxSchemaBytes = 8 << 20 // schema text of a generation, in bytes
	maxSchemaText  = 1 << 20 // one schema, in bytes
)

// compiled is a schema ready for use, or why it is none.
type compiled struct {
	schema *jsonschema.Schema // nil: any object will do
	doc    any                // the schema as parsed, for messages
	shape  *shape             // nil: the schema has keywords that a shape does not know
	err    error
}

// NewValidator returns a Validator without compiled schemas.
func NewValidator() *Validator {
	return &Validator{young: make(map[JSONText]*compiled)}
}

// Check returns nil if args are one JSON object that fits the tool's parameters (JSON Schema 2020-12 unless the
// schema names another draft, formats asserted), else an InvalidArguments error for the model: which field, what was
// expected, what it got. Empty args are {}; empty parameters take any object. No reference is ever fetched. A schema
// that does not compile fits nothing, so a tool belongs through CheckTool first.
func (v *Validator) Check(tool *Tool, args JSONText) *Error {
	obj, bad := parseObject(args)
	if bad != nil {
		return bad
	}
	c := v.compiled(tool.Parameters)
	if c.err != nil {
		return invalidf("the tool's own schema is unusable: %s", Cut(c.err.Error(), maxText))
	}
	if c.schema == nil || c.shape != nil && c.shape.fits(obj) {
		return nil
	}
	if err := c.check(obj); err != nil {
		return invalidf("%s", explain(err, c.doc, obj))
	}
	return nil
}

func invalidf(format string, args ...any) *Error {
	return &Error{Type: InvalidArguments, Message: fmt.Sprintf(format, args...)}
}

// check runs the library, which panics on some schemas that it compiled (numbers it cannot hold, for one).
func (c *compiled) check(obj map[string]any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the tool's schema cannot be applied to them")
		}
	}()
	return c.schema.Validate(obj)
}

func (v *Validator) compiled(params JSONText) *compiled {
	v.mu.RLock()
	c, old := v.young[params], v.old[params]
	v.mu.RUnlock()
	if c != nil {
		return c
	}
	if c = old; c == nil {
		c = compile(params)
	}
	v.keep(params, c)
	return c
}

// keep puts c into the young generation; a full one becomes the old one, whose schemas come back when they are used.
func (v *Validator) keep(params JSONText, c *compiled) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.young) >= maxSchemas || v.youngLen+len(params) > maxSchemaBytes {
		v.old, v.young, v.youngLen = v.young, make(map[JSONText]*compiled), 0
	}
	if _, ok := v.young[params]; !ok {
		v.young[params] = c
		v.youngLen += len(params)
	}
}
