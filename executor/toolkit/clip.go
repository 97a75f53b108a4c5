package toolkit

import (
	"fmt"
	"unicode/utf8"
)

// clip is a writer that keeps the first and the last bytes of what is written to it and counts the rest, so that
// output of any length takes bounded memory: the beginning says what it is, the end says how it went.
type clip struct {
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // where the ring goes on
	half  int    // bytes kept at each end
	total int64
}

func newClip(limit int) *clip { return &clip{half: limit / 2} }

// Write keeps what fits and never fails.
func (c *clip) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	if room := c.half - len(c.head); room > 0 {
		k := min(room, len(p))
		c.head = append(c.head, p[:k]...)
		p = p[k:]
	}
	if len(p) > c.half {
		p = p[len(p)-c.half:]
	}
	if room := c.half - len(c.tail); room > 0 {
		k := min(room, len(p))
		c.tail = append(c.tail, p[:k]...)
		p = p[k:]
	}
	for len(p) > 0 {
		k := copy(c.tail[c.next:], p)
		c.next = (c.next + k) % c.half
		p = p[k:]
	}
	return n, nil
}

// fits tells whether n bytes more can be kept too.
func (c *clip) fits(n int) bool { return c.total+int64(n) <= int64(2*c.half) }

// String returns what was written, or head and tail with a line between them that says how many bytes are left out.
// It never splits a character.
func (c *clip) String() string {
	return c.text(func(_, omitted int64) string { return fmt.Sprintf("\n[... %d bytes omitted ...]\n", omitted) })
}

// text is String with a line of the caller's: mark is told where the gap begins and how many bytes it has.
func (c *clip) text(mark func(from, omitted int64) string) string {
	tail := append(append([]byte(nil), c.tail[c.next:]...), c.tail[:c.next]...)
	if int64(len(c.head)+len(tail)) == c.total {
		return string(c.head) + string(tail)
	}
	head := wholeEnd(c.head)
	tail = wholeStart(tail)
	return string(head) + mark(int64(len(head)), c.total-int64(len(head)+len(tail))) + string(tail)
}

// lastText returns the last n bytes of s or less, beginning with a whole character, after "..." if something is cut.
func lastText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "..." + string(wholeStart([]byte(s[len(s)-n:])))
}

// wholeEnd returns b without the beginning of a character at its end.
func wholeEnd(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}

// wholeStart returns b without the end of a character at its beginning.
func wholeStart(b []byte) []byte {
	for i := 0; i < len(b) && i < utf8.UTFMax; i++ {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}
