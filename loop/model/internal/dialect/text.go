package dialect

import "unicode/utf8"

// Text puts streamed text together. The zero Text is empty.
type Text struct {
	raw   []byte
	shown int
}

// Add appends a piece and returns what can be shown of it: all but a last character that is not complete yet.
func (t *Text) Add(piece Str) string {
	t.raw = append(t.raw, piece...)
	end := len(t.raw) - incomplete(t.raw[t.shown:])
	out := Repair(t.raw[t.shown:end])
	t.shown = end
	return out
}

// String returns the whole text.
func (t *Text) String() string { return Repair(t.raw) }

// incomplete returns how many bytes at the end of b may be the beginning of a character.
func incomplete(b []byte) int {
	if len(b) >= 3 {
		if s := surrogate(b[len(b)-3:]); s != 0 && s < 0xdc00 {
			return 3
		}
	}
	for n := 1; n <= 3 && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
