package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/cmd/internal/view"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct{ want, got, diff string }{
		"one line":     {"a", "b", "  - a\n  + b"},
		"middle":       {"1\n2\n3\n4", "1\n2\nx\n4", "  … 2 equal lines\n  - 3\n  + x"},
		"line more":    {"1", "1\n2", "  … 1 equal line\n  + 2"},
		"far right":    {long + "a", long + "b", "  - …" + strings.Repeat("x", diffLead) + "a\n  + …" + strings.Repeat("x", diffLead) + "b"},
		"many lines":   {strings.Repeat("a\n", 20) + "a", "b", "  - " + strings.Repeat("a\n  - ", diffLines) + "… 9 more lines\n  + b"},
		"steers":       {"a", "\x1b[31mb", "  - a\n  + b"},
		"empty output": {"a", "", "  - a\n  + "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(c.diff, diff(c.want, c.got, view.Style{})); d != "" {
				t.Error(d)
			}
		})
	}
}
