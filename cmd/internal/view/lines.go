package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
)

// sayEvery is how often a pipe gets a word from one running call.
const sayEvery = time.Second

// slowModel is from when on it is worth saying how long a model took, in milliseconds.
const slowModel = 50

// lines turns events into lines of text. The board has the event already.
type lines struct {
	style Style
	board *board
	name  func(instance string) string
	width func() int
}

// each returns the lines of one event for a reader who cannot see a board: everything that happens.
func (l *lines) each(e loop.Event) []string {
	switch e.Type {
	case loop.EventModelResponse:
		return l.response(e)
	case loop.EventToolCall:
		c := l.board.call(e.Turn, e.Call.Index)
		return []string{l.entry("call", c, " "+l.args(c))}
	case loop.EventToolProgress:
		return l.progress(e)
	case loop.EventToolSettled:
		return []string{l.arrived(l.board.call(e.Turn, e.Call.Index))}
	case loop.EventToolResult:
		c := l.board.call(e.Turn, e.Call.Index)
		return []string{l.entry("memory", c, ": "+l.outcome(c))}
	}
	return l.common(e)
}

// settled returns the lines of one event that stay above the live view: a turn when it is over.
func (l *lines) settled(e loop.Event) []string {
	switch e.Type {
	case loop.EventModelResponse:
		if e.Error == "" && e.Calls == 0 {
			return []string{l.style.Bold(fmt.Sprintf("turn %d", e.Turn)) + l.style.Dim(" · the answer")}
		}
		return nil
	case loop.EventStepEnd:
		return l.round(e)
	}
	return l.common(e)
}

// common are the events that every reader gets alike.
func (l *lines) common(e loop.Event) []string {
	switch e.Type {
	case loop.EventStepStart:
		if e.Reason != "" {
			return []string{l.style.Busy(fmt.Sprintf("turn %d: the last one, without tools (%s)", e.Turn, e.Reason))}
		}
	case loop.EventModelRetry:
		return []string{l.style.Busy(fmt.Sprintf("  retry   attempt %d in %s: %s", e.Attempt, Millis(e.WaitMS), flat(e.Error)))}
	case loop.EventApprovalRequested, loop.EventApprovalSettled:
		return []string{l.style.Busy(cut(l.approval(e), l.width()))}
	case loop.EventCompactionEnd:
		return []string{l.style.Busy(l.compaction(e))}
	case loop.EventError:
		return []string{l.style.Bad("error: " + flat(e.Error))}
	case loop.EventFinalOutput:
		return l.ending(e)
	}
	return nil
}

// approval is a question about a call, or what became of it.
func (l *lines) approval(e loop.Event) string {
	a := e.Approval
	if e.Type == loop.EventApprovalRequested {
		text := fmt.Sprintf("  asks    %d.%d %s waits to be approved, until %s", e.Turn, e.Call.Index, flat(e.Call.Tool), time.UnixMilli(a.ExpiresMS).Format(time.DateTime))
		if a.Why != "" {
			text += ": " + flat(a.Why)
		}
		return text
	}
	text := fmt.Sprintf("  decided %d.%d %s: %s", e.Turn, e.Call.Index, flat(e.Call.Tool), flat(a.Decision))
	if a.By != "" {
		text += " by " + flat(a.By)
	}
	if a.Why != "" {
		text += ", " + flat(a.Why)
	}
	return text
}

func (l *lines) compaction(e loop.Event) string {
	if e.Error != "" {
		return "  compact not done: " + flat(e.Error)
	}
	what := fmt.Sprintf("turns 1 to %d", e.Compaction.UpTo)
	if e.Compaction.UpTo == 0 {
		what = "the tasks before this one"
	}
	return fmt.Sprintf("  compact %s, %s; about %d tokens are left", what, e.Compaction.Strategy, e.Compaction.Tokens)
}

// answer returns the answer of an exchange, in the lines that the model gave it.
func (l *lines) answer(e loop.Event) []string {
	text := strings.TrimRight(Clean(e.Text), " \t\n")
	if e.Type != loop.EventFinalOutput || text == "" {
		return nil
	}
	return strings.Split(l.wrap(text, l.width()), "\n")
}

func (l *lines) wrap(text string, width int) string {
	if width <= 0 {
		return text
	}
	return ansi.Wrap(strings.ReplaceAll(text, "\t", "    "), width, "")
}

// ending returns an answer with why it ended, unless that was the model's own decision.
func (l *lines) ending(e loop.Event) []string {
	out := l.answer(e)
	if e.Reason == schema.ReasonDone {
		return out
	}
	why := "ended: " + strings.ReplaceAll(string(e.Reason), "_", " ")
	if e.Error != "" {
		why += ", " + flat(e.Error)
	}
	return append(out, l.style.Busy(why))
}

func (l *lines) response(e loop.Event) []string {
	if e.Error != "" {
		return nil // an error event follows
	}
	var took string
	if e.ElapsedMS >= slowModel {
		took = l.style.Dim(" (the model took " + Millis(e.ElapsedMS) + ")")
	}
	if e.Calls == 0 {
		return []string{l.style.Bold(fmt.Sprintf("turn %d: the answer", e.Turn)) + took}
	}
	out := []string{l.style.Bold(fmt.Sprintf("turn %d: %s", e.Turn, Count(e.Calls, "call"))) + took}
	if text := flat(e.Text); text != "" {
		out = append(out, "  says    "+text)
	}
	return out
}

// entry is a line about one call.
func (l *lines) entry(word string, c *call, rest string) string {
	return cut(fmt.Sprintf("  %-7s %d.%d %s%s", word, c.turn, c.info.Index, l.style.Name(flat(c.info.Tool)), rest), l.width())
}

func (l *lines) args(c *call) string { return l.style.Dim(cut(flat(string(c.info.Args)), 120)) }

// progress passes on at most one word in a second from each call. The first one waits for its worker's name, which
// comes by another way.
func (l *lines) progress(e loop.Event) []string {
	c := l.board.call(e.Turn, e.Call.Index)
	if c == nil || e.Time.Sub(c.shown) < sayEvery {
		return nil
	}
	first := c.shown.IsZero()
	c.shown = e.Time
	if first && c.worker == "" {
		return nil
	}
	return l.running(c, e.Text)
}

func (l *lines) running(c *call, text string) []string {
	var rest string
	if c.worker != "" {
		rest = " on " + l.name(c.worker)
	}
	if text != "" {
		rest += ": " + l.style.Dim(cut(flat(text), 120))
	}
	return []string{l.entry("running", c, rest)}
}

func (l *lines) arrived(c *call) string {
	rest := l.by(c)
	if w := l.board.waitsFor(); w != nil && w.info.Index < c.info.Index {
		rest += l.style.Busy(fmt.Sprintf(", waits for %d.%d", w.turn, w.info.Index))
	}
	return l.entry("arrived", c, rest)
}

// by says who settled a call and how long it ran.
func (l *lines) by(c *call) string {
	if c.result == nil {
		return " never: " + flat(c.lost)
	}
	var b strings.Builder
	if c.worker != "" {
		b.WriteString(" from " + l.name(c.worker))
	}
	if c.result.StartedMS != 0 {
		b.WriteString(" after " + Millis(c.ran()))
	}
	if c.result.Delivery > 1 {
		b.WriteString(l.style.Busy(fmt.Sprintf(", delivery %d", c.result.Delivery)))
	}
	return b.String()
}

// outcome is what memory holds of a call.
func (l *lines) outcome(c *call) string {
	text := cut(Line(c.text), 120)
	if c.ok() {
		return text
	}
	return l.style.Bad(text)
}
