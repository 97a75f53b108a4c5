package dialect

import (
	"bytes"
	"slices"
)

// combining are the keywords that providers refuse at the top of a schema, though they take them below it.
var combining = []string{"allOf", "anyOf", "oneOf", "not", "enum", "const"}

// maxFlattened bounds how deep combinations at the top are nested.
const maxFlattened = 8

// top makes a rewritten schema of arguments one that says at its top that it is an object and which properties it has.
// What alternatives name is named there, what all of them require is required; since that says less than they do, they
// stand in the description too. Whatever the model sends is validated against the schema as its author wrote it.
func (w *rewriter) top(v any) *object {
	out := w.flat(v, maxFlattened)
	said := &object{}
	for _, k := range combining {
		if out.has(k) && !(k == "allOf" && w.plain(out.get(k))) {
			said.set(k, out.get(k))
		}
		out.drop(k)
	}
	out.set("type", "object")
	if _, ok := out.get("properties").(*object); !ok {
		out.set("properties", &object{})
	}
	if len(said.keys) > 0 {
		text, _ := out.get("description").(string)
		if text != "" {
			text += "\n"
		}
		out.set("description", text+"The arguments must also fit this JSON Schema: "+string(Encode(said)))
	}
	if w.kept {
		for _, k := range definitionKeys {
			if w.root.has(k) {
				out.set(k, w.schemas(w.root.get(k)))
			}
		}
	}
	return out
}

// flat returns a schema of objects with the properties of its combinations beside its own. The combinations stay.
func (w *rewriter) flat(v any, depth int) *object {
	o, ok := v.(*object)
	if !ok {
		return &object{}
	}
	out := o.copied()
	if ref, ok := out.get("$ref").(string); ok && depth > 0 {
		out.drop("$ref")
		if target, ok := w.resolve(ref).(*object); ok {
			under := w.flat(w.keywords(target), depth-1)
			for _, k := range under.keys {
				if !out.has(k) {
					out.set(k, under.at[k])
				}
			}
		}
	}
	if depth == 0 {
		return out
	}
	for _, k := range combining[:3] {
		if branches, ok := out.get(k).([]any); ok {
			w.merge(out, k, branches, depth)
		}
	}
	return out
}

// merge puts what branches say of properties into out.
func (w *rewriter) merge(out *object, keyword string, branches []any, depth int) {
	all := keyword == "allOf"
	closed := out.get("additionalProperties") == false
	var required [][]any
	shut := 0
	branches = slices.DeleteFunc(slices.Clone(branches), func(b any) bool { // an argument list is always an object
		o, ok := b.(*object)
		return ok && o.has("type") && !takes(o.get("type"), "object")
	})
	for _, b := range branches {
		f := w.flat(b, depth-1)
		if props, ok := f.get("properties").(*object); ok && !closed {
			addProperties(out, props, all)
		}
		list, _ := f.get("required").([]any)
		required = append(required, list)
		if f.get("additionalProperties") == false {
			shut++
		}
	}
	addRequired(out, required, all)
	if !closed && !all && shut == len(branches) && shut > 0 && !out.has("additionalProperties") {
		out.set("additionalProperties", false)
	}
}

// addProperties adds properties; of one that is there already both schemas hold, or either.
func addProperties(out, props *object, all bool) {
	have, _ := out.get("properties").(*object)
	if have == nil {
		have = &object{}
	}
	have = have.copied()
	for _, k := range props.keys {
		switch old := have.get(k); {
		case old == nil:
			have.set(k, props.at[k])
		case bytes.Equal(Encode(old), Encode(props.at[k])):
		default:
			have.set(k, joined(old, props.at[k], all))
		}
	}
	out.set("properties", have)
}

func joined(a, b any, all bool) any {
	key := "anyOf"
	if all {
		key = "allOf"
	}
	if o, ok := a.(*object); ok && len(o.keys) == 1 && o.has(key) {
		list, _ := o.get(key).([]any)
		for _, one := range list {
			if bytes.Equal(Encode(one), Encode(b)) {
				return a
			}
		}
		o = o.copied()
		o.set(key, append(slices.Clone(list), b))
		return o
	}
	o := &object{}
	o.set(key, []any{a, b})
	return o
}

// addRequired adds what every branch requires, or, where all of them hold, what any does.
func addRequired(out *object, branches [][]any, all bool) {
	list, _ := out.get("required").([]any)
	list = slices.Clone(list)
	for i, b := range branches {
		for _, name := range b {
			everywhere := all || i == 0 && !slices.ContainsFunc(branches, func(other []any) bool { return !slices.Contains(other, name) })
			if everywhere && !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	if len(list) > 0 {
		out.set("required", list)
	}
}

// plain tells whether the branches say nothing that merging them loses.
func (w *rewriter) plain(branches any) bool {
	list, _ := branches.([]any)
	for _, b := range list {
		o, ok := b.(*object)
		if !ok {
			return false
		}
		for _, k := range o.keys {
			if !slices.Contains([]string{"type", "properties", "required", "title", "description"}, k) {
				return false
			}
		}
	}
	return true
}
