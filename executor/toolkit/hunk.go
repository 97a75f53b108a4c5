package toolkit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jetcrew/jetcrew/schema"
)

// apply returns the content of a file after the patch.
func (fp *filePatch) apply(c *change) ([]byte, error) {
	switch {
	case fp.from == "" && c.new != nil:
		return nil, errors.New("exists already")
	case fp.from != "" && c.new == nil:
		return nil, errors.New("does not exist")
	}
	t := newText("")
	if c.new != nil {
		t = newText(string(c.new.data))
	}
	for i, h := range fp.hunks {
		if err := t.apply(h); err != nil {
			return nil, fmt.Errorf("hunk %d: %w", i+1, err)
		}
	}
	data := t.String()
	if fp.to == "" && data != "" {
		return nil, errors.New("the patch removes the file but not all of its lines")
	}
	return []byte(data), nil
}

// text is a file under change: lines with their ends, of which those before done are final.
type text struct {
	lines []string
	done  int
	shift int    // how many lines longer the file is than the hunks to come think
	eol   string // of lines to be added
}

func newText(s string) *text {
	t := &text{lines: strings.SplitAfter(s, "\n"), eol: "\n"}
	if last := len(t.lines) - 1; t.lines[last] == "" {
		t.lines = t.lines[:last]
	}
	if len(t.lines) > 0 && strings.HasSuffix(t.lines[0], "\r\n") {
		t.eol = "\r\n"
	}
	return t
}

func (t *text) String() string { return strings.Join(t.lines, "") }

// apply replaces the old lines of h by the new ones.
func (t *text) apply(h *hunk) error {
	old := h.old()
	at, err := t.find(h, old)
	if err != nil {
		return err
	}
	lines := make([]string, 0, len(t.lines)+len(h.lines)-len(old))
	lines = append(lines, t.lines[:at]...)
	next := at
	for _, l := range h.lines {
		if l.op != '+' {
			next++
		}
		switch l.op {
		case ' ':
			lines = append(lines, t.lines[next-1]) // with the file's own line end
		case '+':
			lines = append(lines, t.added(l))
		}
	}
	t.done = len(lines)
	t.shift += len(lines) - next
	t.lines = closed(append(lines, t.lines[next:]...), t.eol)
	return nil
}

func (t *text) added(l line) string {
	if l.open {
		return l.text
	}
	return l.text + t.eol
}

// closed gives every line but the last an end: the last of the old file may have had none.
func closed(lines []string, eol string) []string {
	for i := range len(lines) - 1 {
		if !strings.HasSuffix(lines[i], "\n") {
			lines[i] += eol
		}
	}
	return lines
}

func (h *hunk) old() []string {
	var old []string
	for _, l := range h.lines {
		if l.op != '+' {
			old = append(old, l.text)
		}
	}
	return old
}

// find returns where the old lines stand, nearest to where the hunk says. Without old lines the hunk's own word counts.
func (t *text) find(h *hunk, old []string) (int, error) {
	want := h.from - 1 + t.shift
	if len(old) == 0 {
		return min(max(want+1, t.done), len(t.lines)), nil
	}
	last := len(t.lines) - len(old)
	want = min(max(want, t.done), last)
	for d := 0; d <= max(want-t.done, last-want); d++ {
		for _, at := range [...]int{want + d, want - d} {
			if at >= t.done && at <= last && t.stands(old, at) {
				return at, nil
			}
		}
	}
	return 0, fmt.Errorf("its lines are not in the file as they stand; the first of them is %q", schema.Cut(old[0], 120))
}

func (t *text) stands(old []string, at int) bool {
	for i, s := range old {
		if strings.TrimRight(t.lines[at+i], "\r\n") != strings.TrimSuffix(s, "\r") {
			return false
		}
	}
	return true
}
