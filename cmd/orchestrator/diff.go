package main

import (
	"strings"

	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/schema"
)

const (
	diffLines = 12  // of each side
	diffWidth = 200 // bytes of a line
	diffLead  = 40  // bytes before the first difference within a line
)

// diff shows two texts by the lines in which they differ: recorded ones with '-', others with '+'.
func diff(want, got string, style view.Style) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	var before int
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b, before = a[1:], b[1:], before+1
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	var out []string
	if before > 0 {
		out = append(out, style.Dim("  … "+view.Count(before, "equal line")))
	}
	from := 0
	if len(a) == 1 && len(b) == 1 {
		from = firstDifference(a[0], b[0])
	}
	out = append(out, side("  - ", a, from, style.Bad)...)
	out = append(out, side("  + ", b, from, style.Good)...)
	return strings.Join(out, "\n")
}

// firstDifference returns where to begin to show two long lines, so that what differs is seen.
func firstDifference(a, b string) int {
	if len(a) <= diffWidth && len(b) <= diffWidth {
		return 0
	}
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return max(0, n-diffLead)
}

func side(sign string, lines []string, from int, paint func(string) string) []string {
	var out []string
	for i, l := range lines {
		if i == diffLines {
			return append(out, paint(sign+"… "+view.Count(len(lines)-i, "more line")))
		}
		if from > 0 {
			l = "…" + strings.ToValidUTF8(l[min(from, len(l)):], "")
		}
		out = append(out, paint(sign+view.Clean(schema.Cut(l, diffWidth))))
	}
	return out
}
