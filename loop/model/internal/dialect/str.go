package dialect

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Str is a JSON string as it was sent, nil when it was absent or null. A stream may cut text inside a character;
// encoding/json would replace both halves, so Str keeps bytes that are not UTF-8, and half a surrogate pair in the
// three bytes that UTF-8 would give it. Repair makes text of the whole.
type Str []byte

// UnmarshalJSON takes a string, null, or any other value, which stands for its own JSON text: some endpoints give
// arguments as an object instead of a string.
func (s *Str) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		*s = nil
	case b[0] == '"':
		*s = unquote(b[1 : len(b)-1])
	default:
		var buf bytes.Buffer
		if err := json.Compact(&buf, b); err != nil {
			return err
		}
		*s = buf.Bytes()
	}
	return nil
}

// Text returns s as valid UTF-8.
func (s Str) Text() string { return Repair(s) }

// unquote decodes the inside of a valid JSON string literal.
func unquote(in []byte) Str {
	out := make(Str, 0, len(in))
	for i := 0; i < len(in); i++ {
		if in[i] != '\\' || i+1 >= len(in) {
			out = append(out, in[i])
			continue
		}
		i++
		if in[i] != 'u' {
			out = append(out, unescape(in[i]))
			continue
		}
		r, ok := hex4(in[i+1:])
		if !ok {
			continue
		}
		i += 4
		if low, ok := lowAfter(in[i+1:], r); ok {
			out = utf8.AppendRune(out, utf16.DecodeRune(r, low))
			i += 6
			continue
		}
		out = appendUnit(out, r)
	}
	return out
}

func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	return rune(n), err == nil
}

// lowAfter reads the escape of a low surrogate that completes high.
func lowAfter(b []byte, high rune) (rune, bool) {
	if high < 0xd800 || high >= 0xdc00 || len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	low, ok := hex4(b[2:])
	return low, ok && low >= 0xdc00 && low < 0xe000
}

func appendUnit(out []byte, r rune) []byte {
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(out, r)
	}
	return append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
}

// Repair returns b as valid UTF-8: two halves of a surrogate pair become their character; what still is no
// character becomes U+FFFD.
func Repair(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		high, low := surrogate(b[i:]), rune(0)
		if high == 0 {
			out = append(out, b[i])
			i++
			continue
		}
		i += 3
		if low = surrogate(b[i:]); high < 0xdc00 && low >= 0xdc00 {
			out = utf8.AppendRune(out, utf16.DecodeRune(high, low))
			i += 3
			continue
		}
		out = utf8.AppendRune(out, utf8.RuneError)
	}
	return strings.ToValidUTF8(string(out), "\uFFFD")
}

// surrogate returns the half of a surrogate pair that b begins with, or 0.
func surrogate(b []byte) rune {
	if len(b) < 3 || b[0] != 0xed || b[1] < 0xa0 || b[1] > 0xbf || b[2] < 0x80 || b[2] > 0xbf {
		return 0
	}
	return 0xd000 | rune(b[1]&0x3f)<<6 | rune(b[2]&0x3f)
}
