package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/jetcrew/jetcrew/loop"
)

const (
	maxCallWidth = 46 // columns of a row that the call itself gets
	maxSpoken    = 4  // lines of an answer that is still arriving
)

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// frame returns the turn under way in at most height lines.
func (l *lines) frame(width, height int) string {
	b, now := l.board, time.Now()
	if !b.underWay() {
		return ""
	}
	out := append([]string{cut(l.head(now), width)}, l.spoken(width)...)
	room := max(1, height-len(out)-len(b.notes)-1)
	for i, c := range b.calls {
		if i == room-1 && len(b.calls) > room {
			out = append(out, l.style.Dim(fmt.Sprintf("    … %d more", len(b.calls)-i)))
			break
		}
		out = append(out, l.row(c, width, now))
	}
	return strings.Join(append(out, b.notes...), "\n")
}

func (l *lines) head(now time.Time) string {
	b := l.board
	title := l.style.Bold(fmt.Sprintf("turn %d", b.turn))
	took := l.style.Dim(" · " + Millis(now.Sub(b.began).Milliseconds()))
	switch {
	case b.retry != "":
		return title + l.style.Busy(" · asking the model again: "+cut(flat(b.retry), 60)) + took
	case b.asking:
		return title + l.style.Dim(" · "+spin(now)+" asking the model") + took
	}
	if len(b.calls) > 0 {
		title += l.style.Dim(" · " + Count(len(b.calls), "call"))
	}
	return title + took
}

// spoken returns what the model says beside its calls, or the last lines of an answer that is still arriving.
func (l *lines) spoken(width int) []string {
	text := strings.TrimSpace(Clean(l.board.text))
	switch {
	case text == "":
		return nil
	case len(l.board.calls) > 0:
		return []string{l.style.Dim(cut("  "+flat(text), width))}
	}
	all := strings.Split(l.wrap(text, width), "\n")
	return all[max(0, len(all)-maxSpoken):]
}

// round is a finished turn: its calls in call order.
func (l *lines) round(e loop.Event) []string {
	if len(l.board.calls) == 0 {
		return nil
	}
	head := fmt.Sprintf(" · %s · %s", Count(len(l.board.calls), "call"), Millis(e.ElapsedMS))
	out := []string{l.style.Bold(fmt.Sprintf("turn %d", e.Turn)) + l.style.Dim(head)}
	out = append(out, l.spoken(l.width())...)
	for _, c := range l.board.calls {
		out = append(out, l.row(c, l.width(), e.Time))
	}
	return append(out, l.board.notes...)
}

// row is one call and how it stands.
func (l *lines) row(c *call, width int, now time.Time) string {
	tool := flat(c.info.Tool)
	left := fmt.Sprintf("%d.%d %s", c.turn, c.info.Index, tool)
	args := flat(string(c.info.Args))
	space := max(12, min(maxCallWidth, width*2/5)) - ansi.StringWidth(left) - 1
	if space < 4 {
		args = ""
	}
	args = cut(args, max(1, space))
	pad := strings.Repeat(" ", max(0, space-ansi.StringWidth(args)))
	left = fmt.Sprintf("%d.%d %s %s%s", c.turn, c.info.Index, l.style.Name(tool), l.style.Dim(args), pad)
	return cut("  "+l.sign(c, now)+" "+left+"  "+l.state(c, now), width)
}

func (l *lines) sign(c *call, now time.Time) string {
	switch {
	case !c.settled:
		return l.style.Busy(spin(now))
	case !c.ok():
		return l.style.Bad("✗")
	case !c.stored:
		return l.style.Busy("◆")
	}
	return l.style.Good("✓")
}

// state says who has the call, for how long, and what came of it.
func (l *lines) state(c *call, now time.Time) string {
	var parts []string
	if c.worker != "" {
		parts = append(parts, l.name(c.worker))
	}
	switch {
	case !c.settled:
		return strings.Join(append(parts, l.waiting(c, now)), " · ")
	case c.ran() > 0:
		parts = append(parts, Millis(c.ran()))
	}
	if c.result != nil && c.result.Delivery > 1 {
		parts = append(parts, l.style.Busy(fmt.Sprintf("delivery %d", c.result.Delivery)))
	}
	return strings.Join(append(parts, l.place(c)), " · ")
}

// waiting says for how long a call has been open, and what was last heard of it.
func (l *lines) waiting(c *call, now time.Time) string {
	text := Millis(now.Sub(c.since).Milliseconds())
	switch {
	case c.orphan:
		text += " · " + l.style.Busy("its worker is gone, waits for another")
	case c.said != "":
		text += " · " + l.style.Dim(Line(c.said))
	}
	return text
}

// place says when a settled call arrived, and what memory holds of it or what it waits for.
func (l *lines) place(c *call) string {
	place := ""
	if len(l.board.calls) > 1 {
		place = "came " + ordinal(c.arrival)
	}
	if w := l.board.waitsFor(); !c.stored && w != nil {
		return l.style.Busy(fmt.Sprintf("%s, waits for %d.%d", place, w.turn, w.info.Index))
	}
	if place != "" {
		place += " · "
	}
	if c.ok() {
		return place + l.style.Dim(Line(c.text))
	}
	return place + l.style.Bad(Line(c.text))
}

func spin(now time.Time) string { return spinner[now.UnixMilli()/100%int64(len(spinner))] }

func ordinal(n int) string {
	switch {
	case n%100 >= 11 && n%100 <= 13:
		return fmt.Sprintf("%dth", n)
	case n%10 == 1:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}
