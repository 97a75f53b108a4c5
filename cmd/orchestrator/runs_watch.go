package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/schema"
)

// RunsWatchCmd is the command runs watch.
type RunsWatchCmd struct {
	runFlags
	JSON bool `name:"json" help:"One JSON object per fact, with its payload."`
}

// watchedFact is a fact in a stream of JSON.
type watchedFact struct {
	Type    string           `json:"type"` // "fact"
	Run     string           `json:"run"`
	Fact    string           `json:"fact"` // its key
	Seq     uint64           `json:"seq"`
	AtMS    int64            `json:"at_ms"`
	Size    int              `json:"size"`           // bytes of the payload
	Payload schema.Encodable `json:"data,omitempty"` // absent when it cannot be read
}

// Run prints the facts until close, or an interrupt, which leaves the run as it is.
func (c *RunsWatchCmd) Run(ctx context.Context, app *cli.App) error {
	app.SaySignals(func(string) { fmt.Fprintln(app.Err, "\nonly the watching ends, the run goes on") })
	s, id, err := c.find(ctx, app)
	if err != nil {
		return fmt.Errorf("runs watch: %w", err)
	}
	defer s.Close()
	out := view.New(view.Config{Out: app.Out, Format: view.JSON})
	w := watcher{tools: map[[2]int]string{}}
	for f, err := range s.Bus.Follow(ctx, id) {
		switch {
		case err != nil:
			return fmt.Errorf("runs watch: %w", err)
		case c.JSON:
			out.Put(watchedFact{"fact", f.Run, f.Key.String(), f.Seq, f.Time.UnixMilli(), len(f.Data), payload(f)})
		default:
			for _, line := range w.lines(f) {
				fmt.Fprintf(app.Out, "%s  %s\n", f.Time.Local().Format(time.TimeOnly), line)
			}
		}
	}
	return nil
}

// payload decodes a fact; nil: it is of a kind that nobody writes, or cannot be read.
func payload(f schema.Fact) schema.Encodable {
	var p schema.Encodable
	switch f.Key.Kind {
	case schema.KindOpen:
		p = new(schema.Open)
	case schema.KindCtl:
		p = new(schema.Ctl)
	case schema.KindSay:
		p = new(schema.Say)
	case schema.KindTurn:
		p = new(schema.Turn)
	case schema.KindSent:
		p = new(schema.Sent)
	case schema.KindBegin:
		p = new(schema.Begin)
	case schema.KindBack:
		p = new(schema.Back)
	case schema.KindAsk:
		p = new(schema.Ask)
	case schema.KindVerdict:
		p = new(schema.Verdict)
	case schema.KindResult:
		p = new(schema.Result)
	case schema.KindView:
		p = new(schema.View)
	case schema.KindFold:
		p = new(schema.Fold)
	case schema.KindAnswer:
		p = new(schema.Answer)
	case schema.KindClose:
		p = new(schema.Close)
	default:
		return nil
	}
	if schema.Decode(f.Data, p) != nil {
		return nil
	}
	return p
}

// watcher says facts to people. It remembers the tools that calls are of.
type watcher struct{ tools map[[2]int]string }

// lines returns what a fact says: a line each for a turn and its calls, nothing for what only the machinery reads.
func (w watcher) lines(f schema.Fact) []string {
	n, i := f.Key.N, f.Key.I
	switch p := payload(f).(type) {
	case nil:
		return []string{entry(f.Key.String(), "(it cannot be read)")}
	case *schema.Sent:
		return nil
	case *schema.Turn:
		return w.turn(n, p)
	case *schema.Begin:
		return []string{w.call("begin", n, i, "at %s, delivery %d", workerOf(p.Instance), p.Delivery)}
	case *schema.Back:
		return []string{w.call("back", n, i, "by %s, not started: %s", workerOf(p.Instance), p.Reason)}
	case *schema.Ask:
		return []string{w.call("ask", n, i, "waits for a person until %s: %s", clock(p.ExpiresMS), view.Line(p.Rule+" "+p.Text))}
	case *schema.Verdict:
		line := verdictLine(p)
		if p.Args != "" {
			line += ", with the arguments " + string(p.Args)
		}
		return []string{w.call("verdict", n, i, "%s", view.Line(line))}
	case *schema.Result:
		return []string{w.call("result", n, i, "%s", settled(p))}
	case *schema.View:
		return []string{w.call("view", n, i, "a guard changed what the memory shows: %s", view.Line(p.Text))}
	default:
		return []string{ofRun(f.Key, p)}
	}
}

func (w watcher) turn(n int, t *schema.Turn) []string {
	says := view.Count(len(t.Calls), "call")
	switch {
	case len(t.Calls) == 0:
		says = view.Line(t.Text)
	case t.Text != "":
		says += ": " + view.Line(t.Text)
	}
	lines := []string{entry(schema.TurnKey(n).String(), "%s", says)}
	for i := range t.Calls {
		c := &t.Calls[i]
		w.tools[[2]int{n, i}] = c.Tool
		to := "queue " + c.Queue
		if c.Decision.Action != schema.ActionAllow {
			to = strings.Join([]string{string(c.Decision.Action), c.Decision.Rule}, " ")
		}
		lines = append(lines, w.call("call", n, i, "%s, %s: %s", c.Label, to, c.Args))
	}
	return lines
}

// call is a line about call n.i.
func (w watcher) call(what string, n, i int, format string, args ...any) string {
	return entry(fmt.Sprintf("%-6s %d.%d", what, n, i), "%s %s", w.tools[[2]int{n, i}], fmt.Sprintf(format, args...))
}

// workerOf names an instance in short, as the other views do.
func workerOf(instance string) string { return "worker …" + view.ShortID(instance) }

// settled says how a call ended, and the beginning of its output.
func settled(r *schema.Result) string {
	how := "ok"
	if r.Error != nil {
		how = string(r.Error.Type)
	}
	if r.StartedMS > 0 {
		how += fmt.Sprintf(" by %s in delivery %d, waited %s, ran %s", workerOf(r.Worker), r.Delivery, view.Millis(r.QueuedMS), view.Millis(r.EndedMS-r.StartedMS))
	}
	return how + ": " + view.Line(r.Output)
}

// ofRun is a line about the run itself.
func ofRun(key schema.Key, p schema.Encodable) string {
	switch p := p.(type) {
	case *schema.Open:
		if p.Agent == nil {
			return entry(key.String(), "one call of a tool")
		}
		return entry(key.String(), "agent %s", p.Agent.ID)
	case *schema.Ctl:
		if p.Act == schema.CtlStop {
			return entry(key.String(), "stop: %s", p.Why)
		}
		return entry(key.String(), "owner %s", p.Instance)
	case *schema.Say:
		return entry(key.String(), "%s: %s", p.Role, view.Line(p.Text))
	case *schema.Answer:
		return entry(key.String(), "%s: %s", word(string(p.Reason)+" "+p.Error), view.Line(p.Text))
	case *schema.Close:
		return entry(key.String(), "%s, %s, %s", p.State, view.Count(p.Turns, "turn"), view.Count(p.Calls, "call"))
	}
	return entry(key.String(), "the turns up to %d are compacted", key.N)
}

// maxSaid bounds the line of a fact, in bytes.
const maxSaid = 200

// entry is a line with nothing in it that steers a terminal.
func entry(what, format string, args ...any) string {
	return fmt.Sprintf("%-11s %s", what, schema.Cut(word(fmt.Sprintf(format, args...)), maxSaid))
}
