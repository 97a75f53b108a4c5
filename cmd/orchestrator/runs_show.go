package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/schema"
)

// RunsShowCmd is the command runs show.
type RunsShowCmd struct {
	runFlags
	Call string `placeholder:"TURN.INDEX" help:"Only this call, in full: what decided it, whether the tool was reached, what the memory shows."`
	JSON bool   `name:"json" help:"One JSON object."`
}

// Run prints what the facts say.
func (c *RunsShowCmd) Run(ctx context.Context, app *cli.App) error {
	turn, index, err := c.place()
	if err != nil {
		return err
	}
	s, id, err := c.find(ctx, app)
	if err != nil {
		return fmt.Errorf("runs show: %w", err)
	}
	defer s.Close()
	facts, err := s.Bus.Facts(ctx, id, 0)
	if err != nil {
		return fmt.Errorf("runs show: %w", err)
	}
	shown := showRun(id, facts)
	if c.Call == "" {
		c.print(app, shown, shown.lines)
		return nil
	}
	call := shown.call(turn, index)
	if call == nil {
		return fmt.Errorf("runs show: run %s has no call %d.%d; `runs show %s` lists them", id, turn, index, id)
	}
	c.print(app, call, call.lines)
	return nil
}

func (c *RunsShowCmd) print(app *cli.App, v any, lines func() []string) {
	if c.JSON {
		view.New(view.Config{Out: app.Out, Format: view.JSON}).Put(v)
		return
	}
	for _, l := range lines() {
		fmt.Fprintln(app.Out, l)
	}
}

// place reads the number of the turn, from 1, and of the call in it, from 0.
func (c *RunsShowCmd) place() (turn, index int, err error) {
	if c.Call == "" {
		return 0, 0, nil
	}
	n, i, ok := strings.Cut(c.Call, ".")
	turn, errN := strconv.Atoi(n)
	index, errI := strconv.Atoi(i)
	if !ok || errN != nil || errI != nil || turn < 1 || index < 0 {
		return 0, 0, cli.Usagef("--call %.40q: want TURN.INDEX such as 1.0; turns count from 1, calls from 0", c.Call)
	}
	return turn, index, nil
}

// shownRun is what the facts say of a run.
type shownRun struct {
	Run       string        `json:"run"`
	Kind      string        `json:"kind"`
	Agent     string        `json:"agent,omitempty"`
	State     string        `json:"state"` // open, stopping, or why it closed
	StartedMS int64         `json:"started_ms"`
	ClosedMS  int64         `json:"closed_ms,omitempty"`
	Turns     int           `json:"turns"`
	Slots     []shownSlot   `json:"slots"`
	Calls     []*shownCall  `json:"calls"`
	Says      []shownSay    `json:"says,omitempty"`
	Answers   []shownAnswer `json:"answers,omitempty"`

	talk []string // says and answers for people, as they came
}

// shownSlot is a slot of control.
type shownSlot struct {
	Slot     int    `json:"slot"`
	Act      string `json:"act"` // own or stop
	Instance string `json:"instance"`
	Why      string `json:"why,omitempty"`
	AtMS     int64  `json:"at_ms"`
}

// shownSay is what the agent was told.
type shownSay struct {
	Role string `json:"role"`
	Text string `json:"text"`
	AtMS int64  `json:"at_ms"`
}

// shownAnswer is the end of an exchange.
type shownAnswer struct {
	Text   string        `json:"text"`
	Reason schema.Reason `json:"reason"`
	Error  string        `json:"error,omitempty"`
	Turn   int           `json:"turn"`
	AtMS   int64         `json:"at_ms"`
}

// shownCall is a call with all that was recorded of it.
type shownCall struct {
	Turn   int             `json:"turn"`
	Index  int             `json:"index"`
	Call   schema.TurnCall `json:"call"`
	Begins []schema.Begin  `json:"begins,omitempty"` // starts of a run-once call: at most one
	Backs  []schema.Back   `json:"backs,omitempty"`  // deliveries given back without a start
	Result *schema.Result  `json:"result,omitempty"` // absent: the call is open
	View   *string         `json:"view,omitempty"`   // what the memory shows instead of the output
}

// showRun folds the facts of a run.
func showRun(id string, facts []schema.Fact) *shownRun {
	r := &shownRun{Run: id, State: "open"}
	for _, f := range facts {
		r.apply(f)
	}
	return r
}

// apply adds one fact; one that cannot be read says nothing.
func (r *shownRun) apply(f schema.Fact) {
	switch f.Key.Kind {
	case schema.KindOpen:
		if o, ok := decoded[schema.Open](f); ok {
			r.Kind, r.StartedMS = o.Kind, f.Time.UnixMilli()
			if o.Agent != nil {
				r.Agent = o.Agent.ID
			}
		}
	case schema.KindCtl:
		if c, ok := decoded[schema.Ctl](f); ok {
			r.Slots = append(r.Slots, shownSlot{f.Key.N, c.Act, c.Instance, c.Why, f.Time.UnixMilli()})
			if c.Act == schema.CtlStop {
				r.State = "stopping"
			}
		}
	case schema.KindTurn:
		if t, ok := decoded[schema.Turn](f); ok {
			r.Turns++
			for i := range t.Calls {
				r.Calls = append(r.Calls, &shownCall{Turn: f.Key.N, Index: i, Call: t.Calls[i]})
			}
		}
	case schema.KindSay:
		if s, ok := decoded[schema.Say](f); ok {
			r.Says = append(r.Says, shownSay{s.Role, s.Text, f.Time.UnixMilli()})
			r.say("say %d, at %s, by %s\n%s", f.Key.N, clock(f.Time.UnixMilli()), word(s.Role), s.Text)
		}
	case schema.KindAnswer:
		if a, ok := decoded[schema.Answer](f); ok {
			r.Answers = append(r.Answers, shownAnswer{a.Text, a.Reason, a.Error, a.Turn, f.Time.UnixMilli()})
			r.say("answer %d, after turn %d, at %s: %s\n%s", f.Key.N, a.Turn, clock(f.Time.UnixMilli()), word(string(a.Reason)+" "+a.Error), a.Text)
		}
	case schema.KindClose:
		if c, ok := decoded[schema.Close](f); ok {
			r.State, r.ClosedMS = c.State, f.Time.UnixMilli()
		}
	default:
		if c := r.call(f.Key.N, f.Key.I); c != nil {
			c.apply(f)
		}
	}
}

// say adds what was said, after an empty line.
func (r *shownRun) say(format string, args ...any) {
	r.talk = append(r.talk, "", strings.TrimSpace(view.Clean(fmt.Sprintf(format, args...))))
}

func (c *shownCall) apply(f schema.Fact) {
	switch f.Key.Kind {
	case schema.KindBegin:
		if b, ok := decoded[schema.Begin](f); ok {
			c.Begins = append(c.Begins, b)
		}
	case schema.KindBack:
		if b, ok := decoded[schema.Back](f); ok {
			c.Backs = append(c.Backs, b)
		}
	case schema.KindResult:
		if r, err := schema.DecodeResult(f.Data); err == nil {
			c.Result = r
		}
	case schema.KindView:
		if v, ok := decoded[schema.View](f); ok {
			c.View = &v.Text
		}
	}
}

func decoded[T any](f schema.Fact) (v T, ok bool) {
	return v, schema.Decode(f.Data, &v) == nil
}

func (r *shownRun) call(turn, index int) *shownCall {
	for _, c := range r.Calls {
		if c.Turn == turn && c.Index == index {
			return c
		}
	}
	return nil
}

func (r *shownRun) lines() []string {
	lines := []string{
		fmt.Sprintf("run      %s", r.Run),
		fmt.Sprintf("agent    %s", orDash(word(r.Agent))),
		fmt.Sprintf("state    %s", word(r.State)),
		fmt.Sprintf("started  %s", clock(r.StartedMS)),
		fmt.Sprintf("turns    %d", r.Turns),
	}
	if r.ClosedMS > 0 {
		lines = append(lines, fmt.Sprintf("closed   %s, after %s", clock(r.ClosedMS), view.Millis(r.ClosedMS-r.StartedMS)))
	}
	for _, s := range r.Slots {
		line := fmt.Sprintf("ctl.%-4d %s %s at %s", s.Slot, word(s.Act), word(s.Instance), clock(s.AtMS))
		if s.Why != "" {
			line += ": " + word(s.Why)
		}
		lines = append(lines, line)
	}
	if len(r.Calls) > 0 {
		rows := [][]string{{"CALL", "TOOL", "QUEUE", "DECISION", "OUTCOME", "WORKER", "DELIVERY", "QUEUED", "RAN"}}
		for _, c := range r.Calls {
			rows = append(rows, c.row())
		}
		lines = append(append(lines, ""), view.Style{}.Table(rows)...)
	}
	return append(lines, r.talk...)
}

func (c *shownCall) row() []string {
	row := []string{fmt.Sprintf("%d.%d", c.Turn, c.Index), word(c.Call.Tool), c.Call.Queue, string(c.Call.Decision.Action), c.outcome(), "-", "-", "-", "-"}
	if r := c.Result; r != nil {
		row[5] = orDash(word(r.Worker))
		if r.Delivery > 0 {
			row[6] = strconv.FormatUint(r.Delivery, 10)
		}
		if r.StartedMS > 0 {
			row[7], row[8] = view.Millis(r.QueuedMS), view.Millis(r.EndedMS-r.StartedMS)
		}
	}
	return row
}

func (c *shownCall) outcome() string {
	switch {
	case c.Result == nil:
		return "open"
	case c.Result.OK:
		return "ok"
	case c.Result.Error != nil:
		return word(string(c.Result.Error.Type))
	}
	return "failed"
}

func (c *shownCall) lines() []string {
	var lines []string
	say := func(name, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%-10s %s", name, fmt.Sprintf(format, args...)))
	}
	once := "run-once"
	if c.Call.Idempotent {
		once = "idempotent"
	}
	say("call", "%d.%d, %s by the model", c.Turn, c.Index, word(c.Call.Label))
	say("tool", "%s, %s, queue %s", word(c.Call.Tool), once, c.Call.Queue)
	if c.Call.Raw != "" {
		say("asked", "%s", view.Clean(c.Call.Raw))
	}
	for _, note := range c.Call.Notes {
		say("wrapped", "%s", view.Clean(note))
	}
	say("arguments", "%s", view.Clean(string(c.Call.Args)))
	if c.Call.Bound != "" {
		say("bound", "%s", view.Clean(string(c.Call.Bound)))
	}
	d := c.Call.Decision
	say("decided", "%s", word(strings.Join([]string{string(d.Action), d.Rule, string(d.Type), d.Text}, " ")))
	for _, b := range c.Backs {
		say("back", "by %s: %s", word(b.Instance), word(b.Reason))
	}
	for _, b := range c.Begins {
		say("begun", "by %s, delivery %d of message %d", word(b.Instance), b.Delivery, b.Seq)
	}
	say("reached", "%s", c.reached())
	say("outcome", "%s", c.outcome())
	switch {
	case c.View != nil:
		say("memory", "%s", view.Clean(*c.View))
		say("", "(a guard put this in place of the output)")
	case c.Result != nil:
		say("memory", "%s", view.Clean(c.Result.Output))
	}
	if r := c.Result; r != nil && r.Size > 0 {
		say("", "(of %d bytes)", r.Size)
	}
	return lines
}

// reached says whether the tool was reached, as far as anybody knows.
func (c *shownCall) reached() string {
	r := c.Result
	switch {
	case r != nil && r.StartedMS > 0:
		return fmt.Sprintf("yes: %s ran it in delivery %d, after %s in the queue, for %s", word(r.Worker), r.Delivery, view.Millis(r.QueuedMS), view.Millis(r.EndedMS-r.StartedMS))
	case len(c.Begins) > 0:
		return "perhaps: it began, and its worker did not say how it went on"
	case c.Call.Decision.Action != schema.ActionAllow:
		return "no: it was decided before"
	case r != nil && !c.Call.Idempotent:
		return "no: it has no begin"
	case r != nil:
		return "nobody says: an idempotent call has no begin"
	}
	return "not yet, as far as is recorded"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func clock(ms int64) string { return time.UnixMilli(ms).Format(time.DateTime) }
