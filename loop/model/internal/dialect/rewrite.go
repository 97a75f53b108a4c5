package dialect

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxInlined bounds the schema text that replaces references in one schema, in bytes.
const maxInlined = 64 << 10

// rewriter writes a valid JSON Schema anew in the form that providers take. It says the same: a reference that does not
// lead back to itself is replaced by what it names, forms of older drafts become those of 2020-12, and a list says what
// its items are. Nothing that is open gets closed.
type rewriter struct {
	root  *object
	old   bool // of a draft in which $ref stands alone
	left  int  // bytes that may still replace references
	kept  bool // a reference stays
	loops map[string]bool
}

func newRewriter(root *object) *rewriter {
	draft, _ := root.get("$schema").(string)
	old := strings.Contains(draft, "draft-04") || strings.Contains(draft, "draft-06") || strings.Contains(draft, "draft-07")
	return &rewriter{root: root, old: old, left: maxInlined, loops: map[string]bool{}}
}

// definitionKeys are the places of schemas that others refer to.
var definitionKeys = []string{"$defs", "definitions"}

// schema rewrites one schema at any depth.
func (w *rewriter) schema(v any) any {
	switch v := v.(type) {
	case bool:
		if v {
			return &object{}
		}
		not := &object{}
		not.set("not", &object{})
		return not
	case *object:
		if ref, ok := v.get("$ref").(string); ok {
			if out := w.inline(v, ref); out != nil {
				return out
			}
			w.kept = true
		}
		return w.keywords(v)
	}
	return v
}

// keywords rewrites the keywords of a schema.
func (w *rewriter) keywords(v *object) *object {
	out := &object{}
	for _, k := range v.keys {
		w.keyword(out, v, k)
	}
	if takes(out.get("type"), "array") && !out.has("items") && !out.has("prefixItems") && !out.has("$ref") {
		out.set("items", &object{})
	}
	return out
}

func (w *rewriter) keyword(out, v *object, k string) {
	val := v.get(k)
	switch k {
	case "$schema":
	case "$defs", "definitions":
		if v != w.root { // those of the root are written when it is known that something refers to them
			out.set(k, w.schemas(val))
		}
	case "properties", "patternProperties", "dependentSchemas":
		out.set(k, w.schemas(val))
	case "anyOf", "oneOf", "allOf", "prefixItems":
		out.set(k, w.list(val))
	case "items":
		if _, ok := val.([]any); !ok {
			out.set(k, w.schema(val))
			return
		}
		out.set("prefixItems", w.list(val))
		if v.has("additionalItems") {
			out.set("items", w.schema(v.get("additionalItems")))
		}
	case "additionalItems": // said with items
	case "additionalProperties", "unevaluatedProperties":
		out.set(k, w.additional(val))
	case "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems":
		out.set(k, w.schema(val))
	case "minimum", "maximum":
		if v.get("exclusive"+strings.ToUpper(k[:1])+k[1:]) != true {
			out.set(k, val)
		}
	case "exclusiveMinimum", "exclusiveMaximum": // a yes or no in draft 4
		switch val {
		case true:
			out.set(k, v.get(strings.ToLower(strings.TrimPrefix(k, "exclusive"))))
		case false:
		default:
			out.set(k, val)
		}
	default:
		out.set(k, val)
	}
}

// additional rewrites the schema of what is not named; {} is what most call true.
func (w *rewriter) additional(v any) any {
	if o, ok := v.(*object); ok && len(o.keys) == 0 {
		return true
	}
	if _, ok := v.(bool); ok {
		return v
	}
	return w.schema(v)
}

func (w *rewriter) schemas(v any) any {
	o, ok := v.(*object)
	if !ok {
		return v
	}
	out := &object{}
	for _, k := range o.keys {
		out.set(k, w.schema(o.at[k]))
	}
	return out
}

func (w *rewriter) list(v any) any {
	in, ok := v.([]any)
	if !ok {
		return v
	}
	out := make([]any, len(in))
	for i := range in {
		out[i] = w.schema(in[i])
	}
	return out
}

// inline returns the schema that ref names together with what stands beside it; nil: the reference must stay.
func (w *rewriter) inline(v *object, ref string) any {
	target := w.resolve(ref)
	if target == nil || w.loop(ref) {
		return nil
	}
	if w.left -= len(Encode(target)); w.left < 0 {
		return nil
	}
	named, beside := w.schema(target), v.copied()
	for _, k := range []string{"$ref", "$schema", "$id", "$defs", "definitions"} {
		beside.drop(k)
	}
	o, ok := named.(*object)
	if !ok {
		return nil
	}
	if !w.old && slices.ContainsFunc(beside.keys, constrains) {
		both := w.keywords(beside)
		also, _ := both.get("allOf").([]any)
		both.set("allOf", append([]any{o}, also...))
		return both
	}
	o = o.copied()
	for _, k := range beside.keys {
		if !constrains(k) {
			o.set(k, beside.at[k])
		}
	}
	return o
}

// constrains tells whether a keyword is more than a remark.
func constrains(key string) bool {
	return !slices.Contains([]string{"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"}, key)
}

// resolve returns the schema at a pointer into the root, nil when ref is none.
func (w *rewriter) resolve(ref string) any {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	if text, err := url.PathUnescape(pointer); err == nil {
		pointer = text
	}
	var at any = w.root
	if pointer == "" {
		return at
	}
	if pointer[0] != '/' {
		return nil // an anchor
	}
	for _, token := range strings.Split(pointer[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch v := at.(type) {
		case *object:
			at = v.get(token)
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	return at
}

// loop tells whether what ref names leads back to it.
func (w *rewriter) loop(ref string) bool {
	known, ok := w.loops[ref]
	if !ok {
		known = w.leads(w.resolve(ref), ref, map[string]bool{})
		w.loops[ref] = known
	}
	return known
}

func (w *rewriter) leads(from any, to string, seen map[string]bool) bool {
	for _, ref := range references(from, nil) {
		if ref == to || strings.HasPrefix(to, ref+"/") {
			return true
		}
		if !seen[ref] {
			seen[ref] = true
			if w.leads(w.resolve(ref), to, seen) {
				return true
			}
		}
	}
	return false
}

// references returns every reference within v, in their order.
func references(v any, list []string) []string {
	switch v := v.(type) {
	case *object:
		for _, k := range v.keys {
			if ref, ok := v.at[k].(string); ok && k == "$ref" {
				list = append(list, ref)
				continue
			}
			list = references(v.at[k], list)
		}
	case []any:
		for _, one := range v {
			list = references(one, list)
		}
	}
	return list
}

// takes tells whether a type keyword allows values of the type.
func takes(typ any, want string) bool {
	if list, ok := typ.([]any); ok {
		return slices.Contains(list, any(want))
	}
	return typ == want
}
