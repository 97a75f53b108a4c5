package agentfile

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// The forms of values that stand for more than their type.

func id() map[string]any {
	return map[string]any{"type": "string", "pattern": validID.String(), "maxLength": maxID}
}

func toolName() map[string]any {
	return map[string]any{"type": "string", "pattern": validTool.String()}
}

func queue() map[string]any {
	return map[string]any{"type": "string", "pattern": validQueue.String()}
}

func modelText() map[string]any {
	return map[string]any{"type": "string", "pattern": `^\s*(` + strings.Join(providers, "|") + `)/.+$`}
}

func ratio() map[string]any {
	return map[string]any{"type": "number", "exclusiveMinimum": 0, "maximum": 1}
}

func alwaysOn() map[string]any {
	return map[string]any{"type": "boolean", "enum": []any{true}}
}

func amount() map[string]any { return map[string]any{"type": "number", "minimum": 0} }

func depth() map[string]any {
	return map[string]any{"type": "integer", "minimum": -1, "maximum": maxDepth, "not": map[string]any{"const": 0}}
}

// Schema returns the JSON Schema (2020-12) of an agent file, for editors and for checks without this program. What a
// schema cannot say, such as that a variable is used, only Parse finds.
func Schema() []byte {
	s := shapeFile().schema()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Jetcrew agent file, " + Version
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		panic(err) // it is made of texts and numbers
	}
	return b.Bytes()
}

// schema is the JSON Schema of a mapping with the fields of s. A field that has no value means the default, unless it
// is required.
func (s *shape) schema() map[string]any {
	properties := map[string]any{}
	var required []any
	var rules []any
	for _, set := range s.settings {
		for _, name := range set.names {
			properties[name] = set.schema(name)
		}
		if set.required {
			required = append(required, set.names[0])
		}
		rules = append(rules, apart(set.names)...)
	}
	rules = append(rules, apart(s.actions)...)
	out := map[string]any{"type": "object", "properties": properties}
	if !s.open {
		out["additionalProperties"] = false
	}
	if required != nil {
		out["required"] = required
	}
	if rules != nil {
		out["allOf"] = rules
	}
	if s.need != nil {
		out["anyOf"] = oneOfThese(s.need)
	}
	return out
}

func (s *setting) schema(name string) map[string]any {
	f := s.form
	if s.millis != nil && inMillis(name) {
		f = s.millis
	}
	out := f()
	if !s.required {
		out = orNull(out)
	}
	out["description"] = s.about
	return out
}

// oneOfThese says that a field of one of the names must be there.
func oneOfThese(names []string) []any {
	var forms []any
	for _, name := range names {
		forms = append(forms, map[string]any{"required": []any{name}})
	}
	return forms
}

// apart says that only one of the names may stand in the file.
func apart(names []string) []any {
	var rules []any
	for i, a := range names {
		for _, b := range names[i+1:] {
			rules = append(rules, map[string]any{"not": map[string]any{"required": []any{a, b}}})
		}
	}
	return rules
}

// orNull lets a value be null, too.
func orNull(s map[string]any) map[string]any {
	if t, ok := s["type"].(string); ok {
		s["type"] = []any{t, "null"}
	}
	if values, ok := s["enum"].([]any); ok {
		s["enum"] = append(slices.Clone(values), nil)
	}
	if forms, ok := s["anyOf"].([]any); ok {
		s["anyOf"] = append(slices.Clone(forms), map[string]any{"type": "null"})
	}
	return s
}

// inMillis tells whether a field's number is one of milliseconds.
func inMillis(name string) bool { return strings.HasSuffix(strings.ToLower(name), "millis") }
