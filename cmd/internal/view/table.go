package view

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Table returns rows as lines with aligned columns, the first of them as a heading. Cells may hold colours.
func (s Style) Table(rows [][]string) []string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	out := make([]string, len(rows))
	for n, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-ansi.StringWidth(cell)+2))
			}
		}
		out[n] = strings.TrimRight(b.String(), " ")
		if n == 0 {
			out[n] = s.Dim(out[n])
		}
	}
	return out
}
