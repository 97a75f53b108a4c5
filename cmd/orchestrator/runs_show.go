package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/bus"
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
	if shown.Kind == "" { // nobody has opened it
		if err := shown.queued(ctx, s.Bus); err != nil {
			return fmt.Errorf("runs show: %w", err)
		}
	}
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
	State     string        `json:"state"` // queued, open, stopping, or why it closed
	StartedMS int64         `json:"started_ms"`
	ClosedMS  int64         `json:"closed_ms,omitempty"`
	Slots     []shownSlot   `json:"slots"`
	Says      []shownSay    `json:"says,omitempty"`
	Turns     []shownTurn   `json:"turns,omitempty"`
	Calls     []*shownCall  `json:"calls"`
	Answers   []shownAnswer `json:"answers,omitempty"`

	talk []string // says, turns and answers for people, as they came, with an empty line before each exchange
	over bool     // the last of them ended an exchange
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
	N    int    `json:"n"`
	Role string `json:"role"`
	Text string `json:"text"`
	AtMS int64  `json:"at_ms"`
}

// shownTurn is an answer of the model, without its calls.
type shownTurn struct {
	N         int          `json:"n"`
	Model     string       `json:"model,omitempty"`
	Text      string       `json:"text,omitempty"`
	Calls     int          `json:"calls"`
	Usage     schema.Usage `json:"usage"`
	StartedMS int64        `json:"started_ms,omitempty"` // request to the model
	AtMS      int64        `json:"at_ms"`
}

// shownAnswer is the end of an exchange.
type shownAnswer struct {
	N      int           `json:"n"`
	Text   string        `json:"text"`
	Reason schema.Reason `json:"reason"`
	Error  string        `json:"error,omitempty"`
	Turn   int           `json:"turn"`
	AtMS   int64         `json:"at_ms"`
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
	case schema.KindSay:
		if s, ok := decoded[schema.Say](f); ok {
			say := shownSay{f.Key.N, s.Role, s.Text, f.Time.UnixMilli()}
			r.Says = append(r.Says, say)
			r.tell(say.line())
		}
	case schema.KindTurn:
		if t, ok := decoded[schema.Turn](f); ok {
			turn := shownTurn{f.Key.N, t.Model, t.Text, len(t.Calls), t.Usage, t.StartedMS, f.Time.UnixMilli()}
			r.Turns = append(r.Turns, turn)
			r.tell(turn.line())
			for i := range t.Calls {
				r.Calls = append(r.Calls, &shownCall{Turn: f.Key.N, Index: i, Call: t.Calls[i]})
			}
		}
	case schema.KindAnswer:
		if a, ok := decoded[schema.Answer](f); ok {
			answer := shownAnswer{f.Key.N, a.Text, a.Reason, a.Error, a.Turn, f.Time.UnixMilli()}
			r.Answers = append(r.Answers, answer)
			r.tell(answer.lines()...)
			r.over = true
		}
	case schema.KindClose:
		if c, ok := decoded[schema.Close](f); ok {
			r.State, r.ClosedMS = c.State, f.Time.UnixMilli()
		}
	case schema.KindAsk, schema.KindVerdict, schema.KindBegin, schema.KindBack, schema.KindResult, schema.KindView:
		if r.Kind == schema.RunCall && r.Calls == nil { // its call is in no turn
			r.Calls = []*shownCall{{Turn: f.Key.N, Index: f.Key.I, Call: schema.TurnCall{Queue: f.Key.Queue}}}
		}
		if c := r.call(f.Key.N, f.Key.I); c != nil && (f.Key.Queue == "" || f.Key.Queue == c.Call.Queue) { // of another queue: a stranger's
			c.apply(f)
		}
	}
}

// queued adds what the queue says of a run that nobody has opened.
func (r *shownRun) queued(ctx context.Context, b *bus.Bus) error {
	for q, err := range b.Queued(ctx) {
		switch {
		case err != nil:
			return err
		case q.ID == r.Run:
			r.Kind, r.Agent, r.StartedMS = schema.RunAgent, q.Call.Tool, q.At.UnixMilli()
			says := "it was stopped before anybody took it; whoever does closes it. "
			if r.State == "open" {
				r.State, says = stateQueued, "nobody has taken it yet; an `orchestrator serve` with this agent does. "
			}
			r.tell(says + oneLine(string(q.Call.Args)))
			return nil
		}
	}
	return nil // it was opened meanwhile
}

// tell adds lines to the talk.
func (r *shownRun) tell(lines ...string) {
	if r.over || r.talk == nil {
		r.talk = append(r.talk, "")
	}
	r.talk, r.over = append(r.talk, lines...), false
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
		fmt.Sprintf("agent    %s", dash(word(r.Agent))),
		fmt.Sprintf("state    %s", word(r.State)),
		fmt.Sprintf("started  %s", clock(r.StartedMS)),
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
	for _, c := range r.Calls {
		if c.waits() && c.Result == nil && r.ClosedMS == 0 {
			lines = append(lines, fmt.Sprintf("asks     call %d.%d waits for a person: orchestrator approvals show %s %d.%d", c.Turn, c.Index, r.Run, c.Turn, c.Index))
		}
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

func (s *shownSay) line() string {
	return fmt.Sprintf("say.%-4d %s  %s: %s", s.N, clock(s.AtMS), word(s.Role), oneLine(s.Text))
}

func (t *shownTurn) line() string {
	line := fmt.Sprintf("turn.%-3d %s  %s", t.N, clock(t.AtMS), view.Count(t.Calls, "call"))
	if t.Model != "" {
		line += ", " + word(t.Model)
	}
	if t.Usage.Total() > 0 {
		line += fmt.Sprintf(", %d tokens in and %d out", t.Usage.Input, t.Usage.Output)
	}
	if t.StartedMS > 0 {
		line += ", after " + view.Millis(max(0, t.AtMS-t.StartedMS))
	}
	if t.Text != "" && t.Calls > 0 { // else the answer has it
		line += ": " + oneLine(t.Text)
	}
	return line
}

func (a *shownAnswer) lines() []string {
	line := fmt.Sprintf("answer.%d %s  %s, after turn %d", a.N, clock(a.AtMS), word(string(a.Reason)), a.Turn)
	if a.Error != "" {
		line += ": " + word(a.Error)
	}
	if text := strings.TrimSpace(view.Clean(a.Text)); text != "" {
		return []string{line, text}
	}
	return []string{line}
}

// oneLine is what a line has room for.
func oneLine(text string) string { return schema.Cut(view.Line(text), 200) }

func clock(ms int64) string { return time.UnixMilli(ms).Format(time.DateTime) }
