package bus_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
)

const looked = 2 * time.Second // that agents are looked for in these tests

// TestAgentThatNobodyServes: the call of an agent that no orchestrator serves ends as NoWorker, also where its parent is
// parked and nobody waits for it, and the parent goes on.
func TestAgentThatNobodyServes(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b, hosting := connect(t, srv), connect(t, srv)
	hosting.LookFor(looked)
	c := &company{calls: map[string][]string{"a": {"stranger", "b"}}}
	hosted(t, hosting, bus.Hosting{Slots: 1, Host: c.host(t, hosting), Agents: agents("a", "b")})
	began := time.Now()
	facts := waitClosed(t, b, start(t, b, "a", `{"task":"go"}`), 30*time.Second)
	if got := outcomes(t, facts); !slices.Equal(got, []schema.ErrorType{schema.NoWorker, ""}) {
		t.Errorf("outcomes %v", got)
	}
	if took := time.Since(began); took < looked {
		t.Errorf("it was looked for during %v only", took)
	}
	if a := answerOf(t, facts, 1); a.Reason != schema.ReasonDone || !strings.Contains(a.Text, "nobody serves the agent") {
		t.Errorf("answer %+v", a)
	}
	for _, err := range bustest.Check(facts) {
		t.Error(err)
	}
}

// TestAgentOfAServerThatIsAway: while the server is away nobody is missed, however long it is, nor right after: those who
// serve the agent could not say so either.
func TestAgentOfAServerThatIsAway(t *testing.T) {
	t.Parallel()
	srv := newRestartable(t)
	b := connect(t, srv.at())
	b.LookFor(looked)
	b.Catalog()
	bustest.Eventually(t, "the agent is missed", func() bool { return b.Unserved("a") })
	srv.restart(func() {
		bustest.Eventually(t, "the server is missed", func() bool { return !b.Connected() })
		over := time.NewTimer(2 * looked)
		defer over.Stop()
		<-over.C
		if b.Unserved("a") {
			t.Error("missed while the server is away")
		}
	})
	bustest.Eventually(t, "the server is back", b.Connected)
	if b.Unserved("a") {
		t.Error("missed right after the server was back")
	}
	bustest.Eventually(t, "the agent is missed again", func() bool { return b.Unserved("a") })
}

func agents(ids ...string) (tools []schema.Tool) {
	for _, id := range ids {
		tools = append(tools, schema.AgentTool(schema.AgentSpec{ID: id}))
	}
	return tools
}

// TestForegroundAgentThatNobodyServes: a run without a message to give back looks for the agent itself, since there may be
// no orchestrator at all.
func TestForegroundAgentThatNobodyServes(t *testing.T) {
	t.Parallel()
	b := connect(t, server(t))
	b.LookFor(looked)
	c := &company{calls: map[string][]string{"a": {"stranger"}}}
	a, err := loop.New(loop.Config{Agent: schema.AgentSpec{ID: "a", Limits: schema.DefaultLimits()}, Model: c, Bus: b, Registry: c, Principal: somebody()})
	if err != nil {
		t.Fatal(err)
	}
	run, err := a.Start(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := run.Say(t.Context(), "go")
	if err != nil || !strings.Contains(answer.Text, `"errorType":"NoWorker","error":"nobody serves the agent \"stranger\", which was looked for during 2s"`) {
		t.Errorf("answer %+v, %v", answer, err)
	}
	if err := run.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAgentThatHasBegun: a call whose child is open is waited for, though nobody serves its agent.
func TestAgentThatHasBegun(t *testing.T) {
	t.Parallel()
	srv := server(t)
	refused := make(chan struct{}, 8)
	b := connect(t, srv, func(c *bus.Config) {
		c.Logger = slog.New(onLine{slog.DiscardHandler, "nobody serves an agent whose call has begun", func() { refused <- struct{}{} }})
	})
	b.LookFor(100 * time.Millisecond)
	c := &schema.Call{Run: schema.NewID(), Turn: 1, Tool: "stranger", Args: `{"task":"go"}`}
	if _, err := b.Append(t.Context(), schema.ChildRun(c.Run, 1, 0, 1), schema.OpenKey(), &schema.Open{Kind: schema.RunAgent}, schema.Key{}); err != nil {
		t.Fatal(err)
	}
	got := make(chan schema.Result, 1)
	go func() {
		r, err := b.Dispatch(t.Context(), c, schema.QueueAgents, time.Minute)
		if err != nil {
			t.Error(err)
		}
		got <- r
	}()
	<-refused
	r := c.Done("at last")
	if _, err := b.Append(t.Context(), c.Run, c.ResultKey(schema.QueueAgents), &r, schema.Key{}); err != nil {
		t.Fatal(err)
	}
	if r := <-got; !r.OK || r.Output != "at last" {
		t.Errorf("result %+v", r)
	}
	if facts, err := b.Facts(t.Context(), schema.ChildRun(c.Run, 1, 0, 1), 0); err != nil || len(facts) != 1 {
		t.Errorf("the child was told something: %v, %v", facts, err)
	}
}

// onLine does something when a line is logged, before whoever logs it goes on.
type onLine struct {
	slog.Handler
	line string
	do   func()
}

func (onLine) Enabled(context.Context, slog.Level) bool { return true }

func (l onLine) Handle(_ context.Context, r slog.Record) error {
	if r.Message == l.line {
		l.do()
	}
	return nil
}
