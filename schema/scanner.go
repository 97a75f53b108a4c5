package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	jsonSpace   = " \t\r\n"
	maxDepth    = 512 // levels of nesting; the readers behind us recurse
	maxNumber   = 512 // characters; a validator computes with all digits of a number
	maxExponent = 4   // digits, for the same reason: 1e9999 still has 10,000 of them
	keysInline  = 16  // keys of an object that are compared one by one before a set is made
)

// jsonKind is the type of a JSON value.
type jsonKind uint8

const (
	kindNull jsonKind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

func (k jsonKind) String() string {
	return [...]string{"null", "boolean", "number", "string", "array", "object"}[k]
}

// scanner reads one JSON text in a single pass. While the text is canonical nothing is copied; from the first
// deviation on, out holds the canonical form of in[:kept]. With build it also makes the value of what it reads, the
// strings of which share in's memory where they can.
type scanner struct {
	in       string
	pos      int
	out      []byte
	kept     int
	keys     []string // keys of the objects that are open, innermost last
	build    bool
	built    any // with build: the value read last
	repaired bool
	items    int // bound on the elements of an array right in the outermost object; 0: none
}

// document reads the whole text as one value.
func (s *scanner) document() (jsonKind, *scanError) {
	k, err := s.value(0)
	if err != nil {
		return k, err
	}
	s.space()
	if s.pos < len(s.in) {
		return k, s.want("the end")
	}
	return k, nil
}

// onlyString reads the whole text as one string.
func (s *scanner) onlyString() (string, *scanError) {
	v, err := s.str(true)
	if err != nil {
		return "", err
	}
	if s.pos < len(s.in) {
		return "", s.want("the end")
	}
	return v, nil
}

// text returns the canonical form of what was read.
func (s *scanner) text() string {
	if s.out == nil {
		return s.in[:s.pos]
	}
	return string(append(s.out, s.in[s.kept:s.pos]...))
}

// drop leaves in[s.pos:to] out of the canonical form.
func (s *scanner) drop(to int) {
	if s.out == nil {
		s.out = make([]byte, 0, len(s.in))
	}
	s.out = append(s.out, s.in[s.kept:s.pos]...)
	s.kept, s.pos = to, to
}

func (s *scanner) space() {
	i := s.pos
	for i < len(s.in) && (s.in[i] == ' ' || s.in[i] == '\n' || s.in[i] == '\r' || s.in[i] == '\t') {
		i++
	}
	if i != s.pos {
		s.drop(i)
	}
}

// next returns the byte at hand, 0 at the end.
func (s *scanner) next() byte {
	if s.pos < len(s.in) {
		return s.in[s.pos]
	}
	return 0
}

// take reads c if it is next.
func (s *scanner) take(c byte) bool {
	if s.pos < len(s.in) && s.in[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) want(what string) *scanError {
	if s.pos >= len(s.in) {
		return s.fail("the text ends (cut off?), expected %s", what)
	}
	r, n := utf8.DecodeRuneInString(s.in[s.pos:])
	if r == utf8.RuneError && n == 1 {
		return s.fail("expected %s, got byte 0x%02x", what, s.in[s.pos])
	}
	return s.fail("expected %s, got %q", what, r)
}

func (s *scanner) fail(format string, args ...any) *scanError {
	return &scanError{at: s.pos, msg: fmt.Sprintf(format, args...)}
}

func (s *scanner) value(depth int) (jsonKind, *scanError) {
	switch c := s.next(); {
	case c == '"':
		v, err := s.str(s.build)
		s.set(v)
		return kindString, err
	case c == '{':
		return kindObject, s.object(depth)
	case c == '[':
		return kindArray, s.array(depth)
	case c == '-' || c >= '0' && c <= '9':
		return kindNumber, s.number()
	default:
		return s.word()
	}
}

func (s *scanner) set(v string) {
	if s.build {
		s.built = v
	}
}

func (s *scanner) word() (jsonKind, *scanError) {
	rest := s.in[s.pos:]
	switch {
	case strings.HasPrefix(rest, "true"):
		s.pos, s.built = s.pos+4, true
		return kindBool, nil
	case strings.HasPrefix(rest, "false"):
		s.pos, s.built = s.pos+5, false
		return kindBool, nil
	case strings.HasPrefix(rest, "null"):
		s.pos, s.built = s.pos+4, nil
		return kindNull, nil
	}
	return kindNull, s.want("a value")
}

func (s *scanner) object(depth int) *scanError {
	if depth >= maxDepth {
		return s.fail("expected at most %d levels of nesting", maxDepth)
	}
	s.pos++
	base := len(s.keys)
	var set map[string]struct{}
	var obj map[string]any
	if s.build {
		obj = make(map[string]any)
	}
	for s.space(); len(s.keys) > base || !s.take('}'); s.space() {
		key, err := s.key(base, &set)
		if err != nil {
			return err
		}
		if _, err := s.value(depth + 1); err != nil {
			return err
		}
		if s.build {
			obj[key] = s.built
		}
		s.space()
		if s.take('}') {
			break
		}
		if !s.take(',') {
			return s.want("',' or '}'")
		}
	}
	s.keys = s.keys[:base]
	if s.build {
		s.built = obj
	}
	return nil
}

// key reads a property's name and the colon, up to its value. Names are compared decoded: "a" and "\u0061" are one.
func (s *scanner) key(base int, set *map[string]struct{}) (string, *scanError) {
	if s.next() != '"' {
		return "", s.want("a property name in double quotes")
	}
	at := s.pos
	key, err := s.str(true)
	if err != nil {
		return "", err
	}
	if s.known(base, key, set) {
		return "", &scanError{at, fmt.Sprintf("the key %q occurs a second time in its object", Cut(key, 64))}
	}
	s.space()
	if !s.take(':') {
		return "", s.want("':' after a property name")
	}
	s.space()
	return key, nil
}

// known tells whether the object whose keys begin at base has key already, and adds it.
func (s *scanner) known(base int, key string, set *map[string]struct{}) bool {
	keys := s.keys[base:]
	s.keys = append(s.keys, key)
	if len(keys) < keysInline {
		for _, k := range keys {
			if k == key {
				return true
			}
		}
		return false
	}
	if *set == nil {
		*set = make(map[string]struct{}, 4*keysInline)
		for _, k := range keys {
			(*set)[k] = struct{}{}
		}
	}
	_, dup := (*set)[key]
	(*set)[key] = struct{}{}
	return dup
}

func (s *scanner) array(depth int) *scanError {
	if depth >= maxDepth {
		return s.fail("expected at most %d levels of nesting", maxDepth)
	}
	s.pos++
	arr := []any{}
	n := 0
	for s.space(); n > 0 || !s.take(']'); s.space() {
		if n++; depth == 1 && s.items > 0 && n > s.items {
			return s.fail("expected at most %d elements", s.items)
		}
		if _, err := s.value(depth + 1); err != nil {
			return err
		}
		if s.build {
			arr = append(arr, s.built)
		}
		s.space()
		if s.take(']') {
			break
		}
		if !s.take(',') {
			return s.want("',' or ']'")
		}
	}
	if s.build {
		s.built = arr
	}
	return nil
}

func (s *scanner) number() *scanError {
	start := s.pos
	s.take('-')
	if !s.take('0') && s.digits() == 0 {
		return s.want("a digit")
	}
	if s.take('.') && s.digits() == 0 {
		return s.want("a digit after the decimal point")
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		switch n := s.digits(); {
		case n == 0:
			return s.want("a digit of the exponent")
		case n > maxExponent:
			return &scanError{start, fmt.Sprintf("expected a number with at most %d digits of exponent", maxExponent)}
		}
	}
	if s.pos-start > maxNumber {
		return &scanError{start, fmt.Sprintf("expected a number of at most %d characters", maxNumber)}
	}
	if s.build {
		s.built = json.Number(s.in[start:s.pos])
	}
	return nil
}

// digits reads decimal digits and returns how many there were.
func (s *scanner) digits() int {
	start := s.pos
	for s.pos < len(s.in) && s.in[s.pos] >= '0' && s.in[s.pos] <= '9' {
		s.pos++
	}
	return s.pos - start
}
