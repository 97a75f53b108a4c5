package view

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// sequences are the escape sequences that programs write into their output: colours and cursor movements, titles and
// links. Only whole ones are taken out: a beginning without an end must not hide the text that follows.
var sequences = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)`)

// Clean returns text without anything that steers a terminal: escape sequences, control characters but newline and
// tab, and the signs that reverse the order of what follows them.
func Clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if !strings.ContainsFunc(text, steers) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if steers(r) {
			return -1
		}
		return r
	}, sequences.ReplaceAllString(text, ""))
}

func steers(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r == 0x061c, r >= 0x200e && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true // bidirectional controls
	case r >= 0xe0000 && r <= 0xe007f:
		return true // tags, which nobody can see
	}
	return false
}

// Line returns the first line of text that is not blank, cleaned, and how many lines follow it.
func Line(text string) string {
	text = strings.TrimSpace(Clean(text))
	first, rest, more := strings.Cut(text, "\n")
	first = strings.TrimSpace(strings.ReplaceAll(first, "\t", " "))
	switch {
	case first == "":
		return "(nothing)"
	case !more:
		return first
	}
	return fmt.Sprintf("%s (+%s)", first, Count(strings.Count(rest, "\n")+1, "line"))
}

// flat returns text on one line, whatever lines it had.
func flat(text string) string { return strings.Join(strings.Fields(Clean(text)), " ") }

// cut returns s in at most width columns.
func cut(s string, width int) string {
	if width <= 0 {
		return s
	}
	return ansi.Truncate(s, width, "…")
}

// Count returns n and the word for so many of it.
func Count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// Millis returns a duration in milliseconds for people.
func Millis(ms int64) string {
	switch {
	case ms < 1000:
		return fmt.Sprintf("%d ms", max(ms, 0))
	case ms < 60_000:
		return fmt.Sprintf("%.1f s", float64(ms)/1000)
	}
	return fmt.Sprintf("%d min %d s", ms/60_000, ms/1000%60)
}
