package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/session"
	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/schema"
)

// RunsCmd is the command runs.
type RunsCmd struct {
	List  RunsListCmd  `cmd:"" help:"List runs, newest first."`
	Show  RunsShowCmd  `cmd:"" help:"Show what is recorded of a run, or of one of its calls."`
	Watch RunsWatchCmd `cmd:"" help:"Print what happens in a run as it comes, until it closes or you interrupt."`
	Stop  RunsStopCmd  `cmd:"" help:"Stop a run: its calls are cancelled, it asks no model any more."`
	Say   RunsSayCmd   `cmd:"" help:"Tell a run something."`
	Close RunsCloseCmd `cmd:"" help:"End a run that was kept open: it closes as its last answer ended. What is under way is stopped."`
}

// recordFlags open what has been recorded: a server, or the directory of an embedded one.
type recordFlags struct {
	cli.Connection
	Data string `type:"path" placeholder:"DIR" help:"Directory of an embedded server, in place of --nats; also of one that another command runs."`
}

func (f *recordFlags) open(ctx context.Context, app *cli.App, fleet ...session.Member) (*session.Session, error) {
	if f.URL == "" && f.Data == "" {
		return nil, cli.Usagef("where are the runs? Name the server (--nats, NATS_URL), or the directory of an embedded one (--data)")
	}
	local := cli.Local{Connection: f.Connection, Data: f.Data}
	return local.Join(ctx, app, fleet...)
}

// runFlags name a run.
type runFlags struct {
	recordFlags
	ID string `arg:"" name:"run" help:"Id of the run, or its beginning."`
}

// find returns the run, which may still wait in the queue.
func (f *runFlags) find(ctx context.Context, app *cli.App) (*session.Session, string, error) {
	s, err := f.open(ctx, app)
	if err != nil {
		return nil, "", err
	}
	id, err := s.Bus.FindQueued(ctx, f.ID)
	if err != nil {
		s.Close()
		return nil, "", whichRun(err)
	}
	return s, id, nil
}

// findRun returns the id of the run whose id begins with prefix.
func findRun(ctx context.Context, b *bus.Bus, prefix string) (string, error) {
	id, err := b.FindRun(ctx, prefix)
	return id, whichRun(err)
}

// whichRun says what to do about an id that names no run, or several.
func whichRun(err error) error {
	switch many := new(bus.AmbiguousError); {
	case errors.As(err, &many):
		return cli.Usagef("%w; name more of it", err)
	case errors.Is(err, bus.ErrNoRun):
		return fmt.Errorf("%w; `orchestrator runs list` shows those that are there", err)
	}
	return err
}

// RunsListCmd is the command runs list.
type RunsListCmd struct {
	recordFlags
	JSON  bool `name:"json" help:"One JSON object per run."`
	Limit int  `default:"20" help:"At most so many; 0: all."`
	Open  bool `help:"Only runs that are not closed, those that wait in the queue among them."`
}

// listedRun is a run in a list.
type listedRun struct {
	Run       string `json:"run"`
	Kind      string `json:"kind"`
	Agent     string `json:"agent,omitempty"`
	State     string `json:"state"` // queued, open, stopping, or why it closed
	Closed    bool   `json:"closed"`
	Turns     int    `json:"turns"`
	Calls     int    `json:"calls"`
	StartedMS int64  `json:"started_ms"`
	AgeMS     int64  `json:"age_ms"`
}

// Run prints the runs.
func (c *RunsListCmd) Run(ctx context.Context, app *cli.App) error {
	s, err := c.open(ctx, app)
	if err != nil {
		return fmt.Errorf("runs list: %w", err)
	}
	defer s.Close()
	out := view.New(view.Config{Out: app.Out, Format: view.JSON})
	rows := [][]string{{"RUN", "AGENT", "STATE", "TURNS", "CALLS", "STARTED", "AGE"}}
	n := 0
	for l, err := range c.runs(ctx, s.Bus) {
		if err != nil {
			return fmt.Errorf("runs list: %w", err)
		}
		if c.JSON {
			out.Put(l)
		} else {
			rows = append(rows, l.row())
		}
		if n++; n == c.Limit {
			break
		}
	}
	if !c.JSON {
		printRows(app, rows)
	}
	return nil
}

// runs returns the runs, newest first, those that wait in the queue among them.
func (c *RunsListCmd) runs(ctx context.Context, b *bus.Bus) iter.Seq2[listedRun, error] {
	return func(yield func(listedRun, error) bool) {
		var queued []bus.QueuedRun // oldest first
		for q, err := range b.Queued(ctx) {
			if err != nil {
				yield(listedRun{}, err)
				return
			}
			queued = append(queued, q)
		}
		newer := func(than time.Time) bool { // lists what was put into the queue after a time
			for len(queued) > 0 && queued[len(queued)-1].At.After(than) {
				q := queued[len(queued)-1]
				queued = queued[:len(queued)-1]
				if !yield(listQueued(ctx, b, q)) {
					return false
				}
			}
			return true
		}
		for info, err := range b.Runs(ctx) {
			if err == nil && c.Open && info.Close != nil {
				continue
			}
			l := listedRun{}
			if err == nil {
				if !newer(info.At) {
					return
				}
				l, err = listRun(ctx, b, info)
			}
			if !yield(l, err) {
				return
			}
		}
		newer(time.Time{})
	}
}

// listQueued describes a run of which there is nothing but the call that starts it, and perhaps a stop.
func listQueued(ctx context.Context, b *bus.Bus, q bus.QueuedRun) (listedRun, error) {
	l, err := listRun(ctx, b, bus.RunInfo{ID: q.ID, At: q.At, Open: schema.Open{Kind: schema.RunAgent, Agent: &schema.AgentSpec{ID: q.Call.Tool}}})
	if l.State == "open" {
		l.State = stateQueued
	}
	return l, err
}

// stateQueued is the state of a run that nobody has opened.
const stateQueued = "queued"

// printRows prints a table whose cells are clean.
func printRows(app *cli.App, rows [][]string) {
	for _, line := range view.NewStyle(app.Out).Table(rows) {
		fmt.Fprintln(app.Out, line)
	}
}

// listRun counts what an open run has done so far; a closed one says it.
func listRun(ctx context.Context, b *bus.Bus, info bus.RunInfo) (listedRun, error) {
	l := listedRun{
		Run: info.ID, Kind: info.Open.Kind, State: "open", StartedMS: info.At.UnixMilli(),
		AgeMS: max(0, b.Now().Sub(info.At).Milliseconds()),
	}
	if info.Open.Agent != nil {
		l.Agent = info.Open.Agent.ID
	}
	if info.Close != nil {
		l.State, l.Closed, l.Turns, l.Calls = info.Close.State, true, info.Close.Turns, info.Close.Calls
		return l, nil
	}
	facts, err := b.Facts(ctx, info.ID, 0, schema.KindTurn, schema.KindCtl)
	for _, f := range facts {
		var turn schema.Turn
		var ctl schema.Ctl
		switch {
		case f.Key.Kind == schema.KindTurn && schema.Decode(f.Data, &turn) == nil:
			l.Turns, l.Calls = l.Turns+1, l.Calls+len(turn.Calls)
		case f.Key.Kind == schema.KindCtl && schema.Decode(f.Data, &ctl) == nil && ctl.Act == schema.CtlStop:
			l.State = "stopping"
		}
	}
	return l, err
}

func (l *listedRun) row() []string {
	agent := word(l.Agent)
	if agent == "" {
		agent = "-" // one call of a tool
	}
	started := time.UnixMilli(l.StartedMS).Format(time.DateTime)
	return []string{l.Run, agent, word(l.State), strconv.Itoa(l.Turns), strconv.Itoa(l.Calls), started, view.Millis(l.AgeMS)}
}

// RunsStopCmd is the command runs stop.
type RunsStopCmd struct {
	runFlags
	Why string `default:"stopped by a user" help:"Reason, for people."`
}

// Run stops the run.
func (c *RunsStopCmd) Run(ctx context.Context, app *cli.App) error {
	if c.Why == schema.WhyClose {
		return cli.Usagef("runs stop: --why %s means something else; `runs close` says it", schema.WhyClose)
	}
	s, id, err := c.find(ctx, app)
	if err != nil {
		return fmt.Errorf("runs stop: %w", err)
	}
	defer s.Close()
	stop, err := s.Bus.StopRun(ctx, id, schema.Cut(schema.CleanText(c.Why), 4<<10))
	if err != nil {
		return fmt.Errorf("runs: %w", err)
	}
	did := "wrote the stop"
	if stop.Already {
		did = "found the stop of somebody else"
	}
	hint := "told the workers to cancel its calls"
	if !stop.Hinted {
		hint = "could not tell the workers; its owner will"
	}
	fmt.Fprintf(app.Out, "run %s: %s in slot ctl.%d, %s\n", id, did, stop.Slot, hint)
	return nil
}

// RunsSayCmd is the command runs say.
type RunsSayCmd struct {
	runFlags
	Text string `arg:"" help:"What to say."`
}

// Run says it.
func (c *RunsSayCmd) Run(ctx context.Context, app *cli.App) error {
	s, id, err := c.find(ctx, app)
	if err != nil {
		return fmt.Errorf("runs say: %w", err)
	}
	defer s.Close()
	k, err := s.Bus.SayTo(ctx, id, c.Text)
	if err != nil {
		return fmt.Errorf("runs: %w", err)
	}
	fmt.Fprintf(app.Out, "run %s: said as say.%d\n", id, k)
	return nil
}
