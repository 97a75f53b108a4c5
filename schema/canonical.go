package schema

import (
	"fmt"
	"strings"
)

// Notes of what Canonical changed beyond white space and escapes; they stand in TurnCall.Notes.
const (
	NoteUnwrapped = "arguments unwrapped from a JSON string"
	NoteRepaired  = "invalid characters replaced by U+FFFD"
)

const emptyObject JSONText = "{}"

// Canonical decides what a model's arguments are, on bytes, so that every later reader sees the same text: one JSON
// object without white space, keys in the order and numbers in the digits they were written in, and each string in
// its shortest valid UTF-8 form (a lone surrogate or an invalid byte is U+FFFD).
//
// Empty and blank arguments and null, bare or as a JSON string, are {}. A JSON string that holds an object is
// unwrapped once. Notes name what was changed. Anything else is an InvalidArguments error, with {} as the text; so are
// a key that occurs twice in an object, nesting deeper than 512 levels, and a number of more than 512 characters or
// with an exponent beyond four digits.
func Canonical(args string) (JSONText, []string, *Error) {
	text := strings.TrimLeft(args, jsonSpace)
	before := len(args) - len(text)
	text = strings.TrimRight(text, jsonSpace)
	switch {
	case text == "null" || strings.TrimSpace(text) == "":
		return emptyObject, nil, nil
	case text[0] == '{':
		return canonicalObject(text, before, nil)
	case text[0] == '"':
		return unwrap(text, before)
	default:
		return emptyObject, nil, notObject(text, before)
	}
}

func canonicalObject(text string, before int, notes []string) (JSONText, []string, *Error) {
	var keys [keysInline]string
	s := scanner{in: text, keys: keys[:0]}
	if _, err := s.document(); err != nil {
		return emptyObject, nil, err.invalid(before)
	}
	if s.repaired {
		notes = append(notes, NoteRepaired)
	}
	return JSONText(s.text()), notes, nil
}

// unwrap reads arguments that are one JSON string. What it holds is taken if it is an object or nothing at all; the
// offsets of errors in there count within the string's value.
func unwrap(text string, before int) (JSONText, []string, *Error) {
	s := scanner{in: text}
	inner, err := s.onlyString()
	if err != nil {
		return emptyObject, nil, err.invalid(before)
	}
	notes := []string{NoteUnwrapped}
	if s.repaired {
		notes = append(notes, NoteRepaired)
	}
	inner = strings.TrimSpace(inner)
	switch {
	case inner == "" || inner == "null":
		return emptyObject, notes, nil
	case inner[0] != '{':
		return emptyObject, nil, wantObject("string" + holding(inner))
	}
	canon, notes, bad := canonicalObject(inner, 0, notes)
	if bad != nil {
		bad.Message = "within the JSON string that the arguments are: " + bad.Message
	}
	return canon, notes, bad
}

// notObject says what arguments are that do not begin like an object: bad JSON, or a value of another type.
func notObject(text string, before int) *Error {
	s := scanner{in: text}
	v, err := s.document()
	if err != nil {
		return err.invalid(before)
	}
	return wantObject(v.String())
}

func wantObject(got string) *Error {
	return &Error{Type: InvalidArguments, Message: "arguments must be an object, got " + got}
}

// holding tells, for a message, that a string's text is itself a JSON object, array or string.
func holding(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || !strings.ContainsRune(`{["`, rune(text[0])) {
		return ""
	}
	s := scanner{in: text}
	k, err := s.document()
	if err != nil {
		return ""
	}
	return " holding " + k.String()
}

// parseObject reads arguments as a validator needs them: strictly, whoever published them, numbers as json.Number.
func parseObject(text JSONText) (map[string]any, *Error) {
	in := strings.Trim(string(text), jsonSpace)
	if in == "" {
		return map[string]any{}, nil
	}
	v, err := parse(in)
	if err != nil {
		return nil, err.invalid(0)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, wantObject(kindOf(v))
	}
	return m, nil
}

func parse(in string) (any, *scanError) {
	var keys [keysInline]string
	s := scanner{in: in, keys: keys[:0], build: true}
	_, err := s.document()
	return s.built, err
}

// scanError says where a text stops being JSON that we take.
type scanError struct {
	at  int // byte offset
	msg string
}

// invalid returns e for the model, for a text that began after so many bytes of white space.
func (e *scanError) invalid(before int) *Error {
	return &Error{Type: InvalidArguments, Message: fmt.Sprintf("arguments are not valid JSON: at byte %d %s", before+e.at, e.msg)}
}

// kindOf names the JSON type of a parsed value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return kindNull.String()
	case bool:
		return kindBool.String()
	case string:
		return kindString.String()
	case []any:
		return kindArray.String()
	case map[string]any:
		return kindObject.String()
	default:
		return kindNumber.String()
	}
}
