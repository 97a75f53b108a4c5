package schema

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// str reads a string and, if its value is needed, returns that. A string that is canonical already costs one look
// at each byte.
func (s *scanner) str(need bool) (string, *scanError) {
	start := s.pos + 1
	for i := start; i < len(s.in); i++ {
		switch c := s.in[i]; {
		case c == '"':
			s.pos = i + 1
			return s.in[start:i], nil
		case c == '\\' || c < ' ' || c >= utf8.RuneSelf:
			s.pos = i
			return s.longStr(start, need)
		}
	}
	s.pos = len(s.in)
	return "", s.want(`'"' to end the string`)
}

// longStr goes on with a string that began at start and whose character at hand is not plain ASCII.
func (s *scanner) longStr(start int, need bool) (string, *scanError) {
	var val []byte // nil while the value is in[start:pos] itself
	for s.pos < len(s.in) {
		at := s.pos
		switch c := s.in[at]; {
		case c == '"':
			s.pos++
			if val != nil {
				return string(val), nil
			}
			return s.in[start:at], nil
		case c < ' ':
			return "", s.control(c)
		case c < utf8.RuneSelf && c != '\\':
			s.plain()
			if val != nil {
				val = append(val, s.in[at:s.pos]...)
			}
		default:
			r, same, err := s.char()
			if err != nil {
				return "", err
			}
			if need && (val != nil || !same) {
				if val == nil {
					val = append(make([]byte, 0, 2*(at-start)+32), s.in[start:at]...)
				}
				val = utf8.AppendRune(val, r)
			}
		}
	}
	return "", s.want(`'"' to end the string`)
}

// plain reads a run of ASCII characters that stand for themselves.
func (s *scanner) plain() {
	i := s.pos
	for i < len(s.in) && s.in[i] >= ' ' && s.in[i] < utf8.RuneSelf && s.in[i] != '"' && s.in[i] != '\\' {
		i++
	}
	s.pos = i
}

// char reads a character that is escaped or not ASCII; same tells that it is written as itself.
func (s *scanner) char() (r rune, same bool, err *scanError) {
	if s.in[s.pos] == '\\' {
		r, err = s.escape()
		return r, false, err
	}
	r, n := utf8.DecodeRuneInString(s.in[s.pos:])
	if r == utf8.RuneError && n == 1 {
		s.repaired = true
		s.drop(s.pos + 1)
		s.out = utf8.AppendRune(s.out, r)
		return r, false, nil
	}
	s.pos += n
	return r, true, nil
}

func (s *scanner) control(c byte) *scanError {
	switch c {
	case '\n', '\r':
		return s.fail(`a raw line break inside a string, expected it as \n`)
	case '\t':
		return s.fail(`a raw tab inside a string, expected it as \t`)
	}
	return s.fail(`a raw control character inside a string, expected it as \u%04x`, c)
}

const (
	escapes = `"\/bfnrt`
	escaped = "\"\\/\b\f\n\r\t"
)

// escape reads an escape sequence. Its canonical form is the character itself where that is allowed.
func (s *scanner) escape() (rune, *scanError) {
	if s.pos+1 >= len(s.in) {
		s.pos = len(s.in)
		return 0, s.want("the rest of an escape sequence")
	}
	c := s.in[s.pos+1]
	if c == 'u' {
		return s.unicode()
	}
	i := strings.IndexByte(escapes, c)
	if i < 0 {
		s.pos++
		return 0, s.want(`one of " \ / b f n r t u after a backslash`)
	}
	if c == '/' {
		s.drop(s.pos + 1)
		s.pos++
		return '/', nil
	}
	s.pos += 2
	return rune(escaped[i]), nil
}

// unicode reads \uXXXX, or two of them that are one character.
func (s *scanner) unicode() (rune, *scanError) {
	r, ok := hex4(s.in[s.pos+2:])
	if !ok {
		return 0, s.fail(`expected four hexadecimal digits after \u`)
	}
	end := s.pos + 6
	if utf16.IsSurrogate(r) {
		low, ok := rune(0), false
		if strings.HasPrefix(s.in[end:], `\u`) {
			low, ok = hex4(s.in[end+2:])
		}
		if r = utf16.DecodeRune(r, low); ok && r != utf8.RuneError {
			end += 6
		} else {
			s.repaired = true
		}
	}
	var buf [8]byte
	if lit := appendChar(buf[:0], r); string(lit) != s.in[s.pos:end] {
		s.drop(end)
		s.out = append(s.out, lit...)
	}
	s.pos = end
	return r, nil
}

// appendChar appends the canonical form of r inside a string.
func appendChar(b []byte, r rune) []byte {
	if i := strings.IndexRune(escaped, r); i >= 0 && r != '/' {
		return append(b, '\\', escapes[i])
	}
	if r < ' ' {
		return append(b, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&0xf])
	}
	return utf8.AppendRune(b, r)
}

// hex4 reads four hexadecimal digits.
func hex4(s string) (r rune, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for i := range 4 {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
