package view

import (
	"image/color"
	"io"
	"os"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/term"
)

// Style colours single lines, or does nothing. The sixteen colours are those the terminal's owner has chosen. The
// zero Style does nothing.
type Style struct{ on bool }

// NewStyle returns the style that suits out: colours on a terminal, unless NO_COLOR is set (see no-color.org).
func NewStyle(out io.Writer) Style {
	return Style{on: IsTerminal(out) && os.Getenv("NO_COLOR") == ""}
}

// IsTerminal tells whether file, an io.Writer or io.Reader, is a terminal that understands more than lines.
func IsTerminal(file any) bool {
	f, ok := file.(*os.File)
	return ok && term.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb"
}

// Width returns the columns of out, 0 where it is no terminal: nothing is cut then.
func Width(out io.Writer) int {
	if f, ok := out.(*os.File); ok && IsTerminal(out) {
		if w, _, err := term.GetSize(f.Fd()); err == nil {
			return w
		}
	}
	return 0
}

func (s Style) render(text string, st lipgloss.Style) string {
	if !s.on || text == "" {
		return text
	}
	return st.Inline(true).Render(text)
}

// Bold is for what to read first.
func (s Style) Bold(text string) string { return s.render(text, lipgloss.NewStyle().Bold(true)) }

// Dim is for what can be passed over.
func (s Style) Dim(text string) string { return s.render(text, lipgloss.NewStyle().Faint(true)) }

// Good is for what went well.
func (s Style) Good(text string) string { return s.colour(text, lipgloss.Green) }

// Bad is for what failed.
func (s Style) Bad(text string) string { return s.colour(text, lipgloss.Red) }

// Busy is for what is under way, or to be noted.
func (s Style) Busy(text string) string { return s.colour(text, lipgloss.Yellow) }

// Name is for names of tools.
func (s Style) Name(text string) string { return s.colour(text, lipgloss.Cyan) }

func (s Style) colour(text string, c color.Color) string {
	return s.render(text, lipgloss.NewStyle().Foreground(c))
}
