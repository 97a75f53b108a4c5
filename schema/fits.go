package schema

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// shape is a schema of the plain keywords, for the two checks that every call gets: it is some times faster than the
// library. It only ever confirms. What it does not confirm, the library decides and explains.
type shape struct {
	types    typeSet
	props    map[string]*shape
	required []string
	closed   bool // additionalProperties is false
	items    *shape
	enum     map[string]bool // strings; nil: any value
	minLen   int             // characters
	maxLen   int             // characters; -1: any number
	visible  bool            // the pattern \S
	minItems int
	maxItems int // -1: any number
	min, max *int64
}

// typeSet is a set of JSON types; 0 is all of them.
type typeSet uint8

const typeInteger = kindObject + 1

func (t typeSet) has(k jsonKind) bool { return t == 0 || t&(1<<k) != 0 }

// shapeOf returns the shape of a schema that compiles, nil if that uses a keyword which a shape does not know.
func shapeOf(doc any) *shape {
	node, ok := doc.(map[string]any)
	if !ok {
		return nil
	}
	s := &shape{maxLen: -1, maxItems: -1}
	for key, v := range node {
		if !s.keyword(key, v) {
			return nil
		}
	}
	return s
}

func (s *shape) keyword(key string, v any) bool {
	switch key {
	case "title", "description", "default", "examples", "$comment", "$schema", "deprecated", "readOnly", "writeOnly":
		return true
	case "type":
		return s.setTypes(v)
	case "properties":
		return s.setProps(v)
	case "items":
		s.items = shapeOf(v)
		return s.items != nil
	case "required":
		return s.setRequired(v)
	case "additionalProperties":
		open, ok := v.(bool)
		s.closed = ok && !open
		return ok
	case "enum":
		return s.setEnum(v)
	}
	return s.bound(key, v)
}

func (s *shape) bound(key string, v any) bool {
	if key == "pattern" {
		s.visible = v == `\S`
		return s.visible
	}
	n, ok := integer(v)
	switch key {
	case "minLength":
		s.minLen = int(n)
	case "maxLength":
		s.maxLen = int(n)
	case "minItems":
		s.minItems = int(n)
	case "maxItems":
		s.maxItems = int(n)
	case "minimum":
		s.min = &n
	case "maximum":
		s.max = &n
	default:
		return false
	}
	return ok
}

func (s *shape) setTypes(v any) bool {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	names := map[any]jsonKind{
		"null": kindNull, "boolean": kindBool, "number": kindNumber, "string": kindString,
		"array": kindArray, "object": kindObject, "integer": typeInteger,
	}
	for _, name := range list {
		k, ok := names[name]
		if !ok {
			return false
		}
		s.types |= 1 << k
	}
	return s.types != 0
}

func (s *shape) setProps(v any) bool {
	props, ok := v.(map[string]any)
	s.props = make(map[string]*shape, len(props))
	for name, p := range props {
		if s.props[name] = shapeOf(p); s.props[name] == nil {
			return false
		}
	}
	return ok
}

func (s *shape) setRequired(v any) bool {
	list, ok := v.([]any)
	for _, name := range list {
		str, ok := name.(string)
		if !ok {
			return false
		}
		s.required = append(s.required, str)
	}
	return ok
}

func (s *shape) setEnum(v any) bool {
	list, ok := v.([]any)
	s.enum = make(map[string]bool, len(list))
	for _, one := range list {
		str, ok := one.(string)
		if !ok {
			return false
		}
		s.enum[str] = true
	}
	return ok
}

// fits tells that v surely is as the schema wants it.
func (s *shape) fits(v any) bool {
	if str, ok := v.(string); ok {
		return s.types.has(kindString) && s.fitsString(str)
	}
	if s.enum != nil {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		return s.types.has(kindObject) && s.fitsObject(v)
	case []any:
		return s.types.has(kindArray) && s.fitsArray(v)
	case json.Number:
		return s.fitsNumber(v)
	case bool:
		return s.types.has(kindBool)
	}
	return v == nil && s.types.has(kindNull)
}

func (s *shape) fitsString(v string) bool {
	if s.enum != nil && !s.enum[v] || s.visible && strings.Trim(v, "\t\n\f\r ") == "" {
		return false
	}
	if s.minLen <= 0 && s.maxLen < 0 {
		return true
	}
	n := utf8.RuneCountInString(v)
	return n >= s.minLen && (s.maxLen < 0 || n <= s.maxLen)
}

func (s *shape) fitsObject(obj map[string]any) bool {
	for _, name := range s.required {
		if _, ok := obj[name]; !ok {
			return false
		}
	}
	for name, v := range obj {
		if p := s.props[name]; p == nil {
			if s.closed {
				return false
			}
		} else if !p.fits(v) {
			return false
		}
	}
	return true
}

func (s *shape) fitsArray(arr []any) bool {
	if len(arr) < s.minItems || s.maxItems >= 0 && len(arr) > s.maxItems {
		return false
	}
	if s.items == nil {
		return true
	}
	for _, v := range arr {
		if !s.items.fits(v) {
			return false
		}
	}
	return true
}

// fitsNumber confirms integers as well as numbers without bounds; a decimal that may be an integer is for the library.
func (s *shape) fitsNumber(v json.Number) bool {
	if s.min == nil && s.max == nil && s.types.has(kindNumber) {
		return true
	}
	n, ok := integer(v)
	return ok && (s.types.has(typeInteger) || s.types.has(kindNumber)) && (s.min == nil || n >= *s.min) && (s.max == nil || n <= *s.max)
}

// integer reads a number that is written as an integer and is far from overflow.
func integer(v any) (int64, bool) {
	num, ok := v.(json.Number)
	if !ok || len(num) > 15 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(num), 10, 64)
	return n, err == nil
}
