package agentfile

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/jetcrew/jetcrew/schema"
)

// providers are the model clients there are.
var providers = []string{"openai", "anthropic", "replay"}

// model reads "provider/name", or fields provider, model, options and price.
func (r *reader) model(root ast.Node, f field) (schema.ModelSpec, schema.Parallel) {
	if f.null() {
		r.failAt(top(root, f), CodeModelRequired, "model is missing; such as openai/gpt-4o")
		return schema.ModelSpec{}, schema.Parallel{}
	}
	if s, ok := f.value.(*ast.StringNode); ok {
		provider, name, cut := strings.Cut(strings.TrimSpace(s.Value), "/")
		if !cut || provider == "" || name == "" {
			r.fail(f.value, CodeModelSelector, "model %q: want provider/name, such as openai/gpt-4o", short(s.Value))
		} else {
			r.provider(f.value, provider)
		}
		return schema.ModelSpec{Provider: provider, Name: name}, schema.Parallel{}
	}
	before := len(r.problems)
	fields := r.object(f.value, shapeModel())
	spec := schema.ModelSpec{
		Provider: strings.TrimSpace(r.text(fields[fieldProvider])),
		Name:     strings.TrimSpace(r.text(fields[fieldModel])),
	}
	if spec.Provider != "" {
		r.provider(fields[fieldProvider].value, spec.Provider)
	}
	if len(r.problems) == before && (spec.Provider == "" || spec.Name == "") {
		code := CodeModelSelector
		if spec.Provider == "" {
			code = CodeModelProvider
		}
		r.failAt(f.key, code, "model: provider and model are required")
	}
	parallel := r.options(fields[fieldOptions], &spec)
	spec.Price = r.price(fields[fieldPrice])
	return spec, parallel
}

func (r *reader) provider(at ast.Node, name string) {
	if !contains(providers, name) {
		r.fail(at, CodeProviderUnknown, "unknown provider %q%s", short(name), suggest(name, providers))
	}
}

// price reads what a model costs, in US dollars for a million tokens.
func (r *reader) price(f field) (p schema.Price) {
	if f.null() {
		return p
	}
	fields := r.object(f.value, shapePrice())
	p.Input, _ = r.amount(fields[fieldInput])
	p.Output, _ = r.amount(fields[fieldOutput])
	return p
}

// options sets in spec what goes to the provider, and the size of its window, and returns the settings of calls that
// stand among it.
func (r *reader) options(f field, spec *schema.ModelSpec) schema.Parallel {
	if f.null() {
		return schema.Parallel{}
	}
	own, rest := shapeOptions().sort(r, r.fields(f.value, fieldOptions))
	parallel := schema.Parallel{Calls: r.flag(own[fieldParallel])}
	if n, ok := r.number(own[fieldMaxParallel]); ok && n > 0 {
		parallel.Max = int(n)
	}
	if n, ok := r.number(own[fieldCallTimeout]); ok && n > 0 {
		parallel.TimeoutMS = n
	}
	if n, ok := r.number(own[fieldWindow]); ok && n > 0 {
		spec.ContextWindow = n
	}
	if len(rest) > 0 {
		var b bytes.Buffer
		r.jsonFields(&b, fieldOptions, rest, 0)
		spec.Options = schema.JSONText(b.String())
	}
	return parallel
}

// json writes a value, below the field name, as JSON. Numbers keep their digits where JSON can hold them.
func (r *reader) json(b *bytes.Buffer, name string, n ast.Node, depth int) {
	if depth > maxNesting {
		r.fail(n, CodeYAMLSize, "%s: too deeply nested", name)
		return
	}
	switch n := n.(type) {
	case *ast.NullNode:
		b.WriteString("null")
	case *ast.BoolNode:
		b.WriteString(strconv.FormatBool(n.Value))
	case *ast.IntegerNode:
		writeJSON(b, n.Value)
	case *ast.FloatNode:
		if digits := n.Token.Value; json.Valid([]byte(digits)) {
			b.WriteString(digits)
		} else {
			writeJSON(b, n.Value)
		}
	case *ast.StringNode:
		writeJSON(b, n.Value)
	case *ast.SequenceNode:
		b.WriteByte('[')
		for i, v := range n.Values {
			if i > 0 {
				b.WriteByte(',')
			}
			r.json(b, name, r.resolve(v), depth+1)
		}
		b.WriteByte(']')
	case ast.MapNode:
		r.jsonFields(b, name, r.fields(n.(ast.Node), name), depth+1)
	default:
		r.fail(n, CodeTypeJSON, "%s: want a value that JSON has, got %s", name, kind(n))
	}
}

func (r *reader) jsonFields(b *bytes.Buffer, name string, fields []field, depth int) {
	b.WriteByte('{')
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		writeJSON(b, f.name)
		b.WriteByte(':')
		r.json(b, name, f.value, depth+1)
	}
	b.WriteByte('}')
}

// writeJSON writes a text or number; these always encode.
func writeJSON(b *bytes.Buffer, v any) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	b.Truncate(b.Len() - 1) // the newline that Encode adds
}

// top is where a missing field is reported: at the field that has no value, or at the file's first.
func top(root ast.Node, f field) *token.Token {
	if f.key != nil {
		return f.key
	}
	if m, ok := root.(ast.MapNode); ok {
		if it := m.MapRange(); it.Next() {
			return it.Key().GetToken()
		}
	}
	return root.GetToken()
}
