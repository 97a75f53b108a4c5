package memory

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jetcrew/jetcrew/schema"
)

// Bounds of one text within a transcript, in bytes.
const (
	maxPart = 8 << 10
	minPart = 128
)

// Transcript tells what a fold of everything up to turn n would compact, with the newest fold's own text at its head, in
// about size bytes at most: a model is to summarise it. Long texts keep their heads and tails.
func (r *Run) Transcript(n, size int) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	b := r.begin(r.newest())
	told := 0 // the instructions are not part of it
	if len(b.msgs) > 0 && b.msgs[0].Role == schema.RoleSystem {
		told = 1
	}
	b.extend(min(n, r.turns))
	for part := maxPart; ; part /= 2 {
		text := tell(b.msgs[told:], b.fold != nil, part)
		if len(text) <= size || part <= minPart {
			return middle(text, size)
		}
	}
}

// tell writes messages as text, each of their texts in about part bytes; the first one whole if so wanted.
func tell(msgs []schema.Message, whole bool, part int) string {
	var b strings.Builder
	for i, m := range msgs {
		text := middle(m.Text, part)
		switch {
		case i == 0 && whole:
			text = m.Text
		case m.Role == schema.RoleTool && m.Error:
			fmt.Fprintf(&b, "result of %s, failed: ", m.Name)
		case m.Role == schema.RoleTool:
			fmt.Fprintf(&b, "result of %s: ", m.Name)
		case m.Text != "":
			b.WriteString(m.Role + ": ")
		}
		b.WriteString(text)
		for _, c := range m.Calls {
			fmt.Fprintf(&b, "\ncall of %s: %s", c.Name, middle(c.Args, part))
		}
		b.WriteString("\n\n")
	}
	return strings.TrimSpace(b.String())
}

// middle returns s in about size bytes, without its middle if it is longer, never cut inside a character.
func middle(s string, size int) string {
	if len(s) <= size {
		return s
	}
	tail := len(s) - size/2
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return schema.Cut(s, size-size/2) + "\n" + s[tail:]
}
