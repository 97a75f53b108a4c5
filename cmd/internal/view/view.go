package view

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/jetcrew/jetcrew/loop"
)

// Format is the form in which a view shows events.
type Format string

// The formats.
const (
	Auto  Format = ""      // Live on a terminal, else Plain
	Live  Format = "live"  // what is under way is redrawn in place; needs a terminal
	Plain Format = "plain" // one line for each thing that happens
	JSON  Format = "json"  // one JSON object for each event
	Quiet Format = "quiet" // answers only
)

// Config sets up a View.
type Config struct {
	Out    io.Writer                    // required
	Format Format                       // default Auto
	Name   func(instance string) string // what to call a worker; default: the end of its instance id
}

func (c Config) withDefaults() Config {
	if c.Name == nil {
		c.Name = ShortID
	}
	if c.Format == Auto {
		c.Format = Plain
		if IsTerminal(c.Out) {
			c.Format = Live
		}
	}
	return c
}

// ShortID returns the end of an id, which is where ids that were made at nearly the same time differ.
func ShortID(id string) string { return id[max(0, len(id)-6):] }

// View shows runs, one after the other. Its methods are safe for concurrent use.
type View struct {
	cfg   Config
	style Style

	mu        sync.Mutex
	board     board
	lines     lines
	live      *live // nil: lines go straight to Out
	suspended bool  // it is live again from the next turn on
}

// New returns a view. Close ends it.
func New(cfg Config) *View {
	cfg = cfg.withDefaults()
	v := &View{cfg: cfg, style: NewStyle(cfg.Out)}
	v.board.reset(0)
	name := func(instance string) string { return flat(cfg.Name(instance)) } // an instance is what a stranger says
	v.lines = lines{style: v.style, board: &v.board, name: name, width: func() int { return Width(cfg.Out) }}
	v.Resume()
	return v
}

// Resume begins the live view, or begins it again after Close. In any other format it does nothing.
func (v *View) Resume() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.suspended = false
	v.start()
}

// start wants v.mu held.
func (v *View) start() {
	if v.cfg.Format == Live && v.live == nil {
		v.live = startLive(v.cfg.Out, v.frame)
	}
}

// Suspend is Close until the next turn begins: somebody is asked at the terminal meanwhile. The rest of the turn under way is shown
// as plain lines, since what it has shown so far stays.
func (v *View) Suspend() {
	v.Close()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.suspended = true
}

// Style returns the colours of this view.
func (v *View) Style() Style { return v.style }

// Event shows one event. It is what loop.Config.Events wants.
func (v *View) Event(e loop.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch v.cfg.Format {
	case JSON:
		v.write(jsonLine(e))
	case Quiet:
		v.board.apply(e)
		v.print(v.lines.answer(e))
	default:
		if v.suspended && e.Type == loop.EventStepStart {
			v.suspended = false
			v.start()
		}
		v.board.apply(e)
		if v.live != nil {
			v.print(v.lines.settled(e))
			return
		}
		v.print(v.lines.each(e))
	}
}

// Working says that a worker has a call. It is a hint and may come twice, or when the call has settled already.
func (v *View) Working(turn, index int, instance string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.board.working(turn, index, instance)
	if c != nil && v.live == nil && v.cfg.Format != JSON && v.cfg.Format != Quiet {
		c.shown = time.Now()
		v.print(v.lines.running(c, c.said))
	}
}

// Gone says that a worker has died: the calls it had wait for another.
func (v *View) Gone(instance string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.board.gone(instance)
}

// Note shows that something happened that is no event of the run. With JSON it is an object of its own: typ is its
// "type", text its "text".
func (v *View) Note(typ, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch v.cfg.Format {
	case JSON:
		v.write(jsonLine(note{Type: typ, Text: text}))
	case Quiet:
	default:
		v.note(v.style.Busy(cut("  "+flat(text), v.lines.width())))
	}
}

// note keeps a line with the turn under way, which a live view shows as a whole. The caller holds v.mu.
func (v *View) note(line string) {
	if v.live != nil && v.board.underWay() {
		v.board.notes = append(v.board.notes, line)
		return
	}
	v.print([]string{line})
}

// Print shows lines for people as they stand: nothing with JSON and Quiet.
func (v *View) Print(text ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cfg.Format != JSON && v.cfg.Format != Quiet {
		v.print(text)
	}
}

// Put shows a value as it stands: with JSON as an object of its own, else not at all.
func (v *View) Put(value any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cfg.Format == JSON {
		v.write(jsonLine(value))
	}
}

// Writer returns where logs go while the view is live, or they would tear it. Otherwise it returns other.
func (v *View) Writer(other io.Writer) io.Writer {
	if v.cfg.Format != Live {
		return other
	}
	return logWriter{v}
}

// logWriter shows what is written to it as lines that stay. A write holds whole lines.
type logWriter struct{ view *View }

func (w logWriter) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		w.view.Print(w.view.style.Dim(flat(line)))
	}
	return len(p), nil
}

// Close ends the live view and leaves what it showed on the terminal. What comes later is shown as plain lines. It is
// safe to call twice.
func (v *View) Close() {
	v.mu.Lock()
	l := v.live
	v.suspended = false
	v.mu.Unlock()
	if l == nil {
		return
	}
	l.close() // draws a last time, for which it needs v.mu
	v.mu.Lock()
	defer v.mu.Unlock()
	v.live = nil
	v.print(l.rest())
}

// print shows lines that stay. The caller holds v.mu.
func (v *View) print(text []string) {
	if v.live != nil {
		v.live.print(text)
		return
	}
	for _, line := range text {
		v.write(line)
	}
}

func (v *View) write(line string) {
	_, _ = fmt.Fprintln(v.cfg.Out, line) // a reader that has gone away ends the program by SIGPIPE
}

// frame returns what is under way now, for the live view.
func (v *View) frame(width, height int) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lines.frame(width, height)
}
