package bus_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
)

// outcomes returns the error type of each call of turn 1, "" for a success.
func outcomes(t *testing.T, facts []schema.Fact) (types []schema.ErrorType) {
	t.Helper()
	byCall := map[int]schema.ErrorType{}
	for _, f := range facts {
		if f.Key.Kind != schema.KindResult {
			continue
		}
		r, err := schema.DecodeResult(f.Data)
		if err != nil {
			t.Fatal(err)
		}
		byCall[f.Key.I] = ""
		if r.Error != nil {
			byCall[f.Key.I] = r.Error.Type
		}
	}
	for i := range len(byCall) {
		types = append(types, byCall[i])
	}
	return types
}

// holdUp returns work that the named agents are stuck with until their request ends, and what says that one is.
func holdUp(agents ...string) (work func(context.Context, string) error, stuck chan string) {
	stuck = make(chan string, 16)
	return func(ctx context.Context, agent string) error {
		if !slices.Contains(agents, agent) {
			return nil
		}
		stuck <- agent
		<-ctx.Done()
		return ctx.Err()
	}, stuck
}

// TestD05CancelledChild: one of three children is stopped; its call is cancelled, the others go on, and the parent answers.
func TestD05CancelledChild(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	work, stuck := holdUp("c")
	c := &company{calls: map[string][]string{"a": {"b", "c", "d"}}, work: work}
	c.open(t, connect(t, srv), 2)
	run := start(t, b, "a", `{"task":"go"}`)
	<-stuck
	if _, err := b.StopRun(t.Context(), schema.ChildRun(run, 1, 1, 1), "enough"); err != nil {
		t.Fatal(err)
	}
	facts := waitClosed(t, b, run, 20*time.Second)
	if got := outcomes(t, facts); !slices.Equal(got, []schema.ErrorType{"", schema.Cancelled, ""}) {
		t.Errorf("outcomes %v", got)
	}
	if a := answerOf(t, facts, 1); a.Reason != schema.ReasonDone {
		t.Errorf("answer %+v", a)
	}
	for _, err := range bustest.Check(facts) {
		t.Error(err)
	}
}

// TestD04StopReachesChildren: a stop of a parked run ends its children first; it is over when they are.
func TestD04StopReachesChildren(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	work, stuck := holdUp("c")
	c := &company{calls: map[string][]string{"a": {"b"}, "b": {"c"}}, work: work}
	c.open(t, connect(t, srv), 1)
	run := start(t, b, "a", `{"task":"go"}`)
	<-stuck
	if _, err := b.StopRun(t.Context(), run, "enough"); err != nil {
		t.Fatal(err)
	}
	facts := waitClosed(t, b, run, 30*time.Second)
	end := facts[len(facts)-1].Seq
	if got := outcomes(t, facts); !slices.Equal(got, []schema.ErrorType{schema.Cancelled}) {
		t.Errorf("outcomes %v", got)
	}
	child := schema.ChildRun(run, 1, 0, 1)
	for _, below := range []string{child, schema.ChildRun(child, 1, 0, 1)} {
		facts := waitClosed(t, b, below, 10*time.Second)
		for _, f := range facts {
			if f.Key.Kind == schema.KindTurn && f.Seq > end {
				t.Errorf("run %s: %s after the parent's close", below, f.Key)
			}
		}
	}
}

// TestD04StopBelowWithoutOrchestrators: a stop ends what runs for the runs below, though no orchestrator lives that could
// hand it on.
func TestD04StopBelowWithoutOrchestrators(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b, g := connect(t, srv), newDoor()
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 1, Tools: toolbox{"wait": g.run}})
	above := schema.NewID()
	run := above
	openRun(t, b, run)
	for range 2 {
		turn := &schema.Turn{N: 1, Calls: []schema.TurnCall{{Queue: schema.QueueNone}, {Tool: "helper", Queue: schema.QueueAgents}}}
		if _, err := b.Append(t.Context(), run, schema.TurnKey(1), turn, schema.Key{}); err != nil {
			t.Fatal(err)
		}
		run = schema.ChildRun(run, 1, 1, 1)
		openRun(t, b, run)
	}
	owner, done := connect(t, srv), make(chan struct{})
	go func() {
		defer close(done)
		_, _ = owner.Dispatch(context.Background(), call(run, "wait", 0), "test", time.Hour) // the connection ends it
	}()
	<-g.started
	owner.Close()
	<-done
	if _, err := b.StopRun(t.Context(), above, "enough"); err != nil {
		t.Fatal(err)
	}
	bustest.Eventually(t, "the call is cancelled", func() bool {
		facts, err := b.Facts(t.Context(), run, 0, schema.KindResult)
		if err != nil || len(facts) == 0 {
			return false
		}
		r, err := schema.DecodeResult(facts[0].Data)
		if err != nil || r.Error == nil || r.Error.Type != schema.Cancelled {
			t.Errorf("%+v, %v", r, err)
		}
		return true
	})
}

// TestChildDeadline: a parked parent's timer ends a child that is over its time.
func TestChildDeadline(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	work, _ := holdUp("b")
	c := &company{calls: map[string][]string{"a": {"b"}}, work: work, within: 500 * time.Millisecond}
	c.open(t, connect(t, srv), 2)
	facts := waitClosed(t, b, start(t, b, "a", `{"task":"go"}`), 20*time.Second)
	if got := outcomes(t, facts); !slices.Equal(got, []schema.ErrorType{schema.Timeout}) {
		t.Errorf("outcomes %v", got)
	}
}

// TestChildRefused: agents that call themselves, or each other too deep, are refused by a result.
func TestChildRefused(t *testing.T) {
	t.Parallel()
	deep := map[string][]string{}
	for c := 'a'; c < 'l'; c++ {
		deep[string(c)] = []string{string(c + 1)}
	}
	for name, tt := range map[string]struct {
		calls map[string][]string
		want  string
	}{
		"itself": {map[string][]string{"a": {"b"}, "b": {"a"}}, "cannot call itself"},
		"deep":   {deep, "not deeper"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := server(t)
			b := connect(t, srv)
			c := &company{calls: tt.calls}
			c.open(t, connect(t, srv), 2)
			facts := waitClosed(t, b, start(t, b, "a", `{"task":"go"}`), 30*time.Second)
			if a := answerOf(t, facts, 1); !strings.Contains(a.Text, tt.want) {
				t.Errorf("answer %+v", a)
			}
		})
	}
}

// TestKeptRun: a kept run answers what is said to it though nobody owns it, and closes on request.
func TestKeptRun(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	c := &company{}
	c.open(t, connect(t, srv), 1)
	run := start(t, b, "a", `{"task":"go","keep":true}`)
	waitFact(t, b, run, schema.AnswerKey(1))
	if _, err := b.SayTo(t.Context(), run, "and now?"); err != nil {
		t.Fatal(err)
	}
	waitFact(t, b, run, schema.AnswerKey(2))
	if _, err := b.StopRun(t.Context(), run, schema.WhyClose); err != nil {
		t.Fatal(err)
	}
	var end schema.Close
	facts := waitClosed(t, b, run, 20*time.Second)
	if err := schema.Decode(facts[len(facts)-1].Data, &end); err != nil || end.State != string(schema.ReasonDone) {
		t.Errorf("close %+v, %v", end, err)
	}
}

// TestB13WakeConsumerDeleted: what is stored while nobody forwards wake-ups, because their consumer was deleted, wakes its
// run all the same.
func TestB13WakeConsumerDeleted(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b, f := connect(t, srv), stranger(t, srv)
	c := &company{}
	c.open(t, connect(t, srv), 1)
	run := start(t, b, "a", `{"task":"go","keep":true}`)
	for k := 1; k <= 3; k++ {
		waitFact(t, b, run, schema.AnswerKey(k))
		f.waitEmpty() // the run is parked
		deleteConsumer(t, srv, "JC_RUNS", "wake")
		if _, err := b.SayTo(t.Context(), run, "and now?"); err != nil {
			t.Fatal(err)
		}
	}
	waitFact(t, b, run, schema.AnswerKey(4))
}

// TestKeptRunExpires: a kept conversation closes by itself when nobody has said anything for long enough.
func TestKeptRunExpires(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	c := &company{keep: time.Second}
	c.open(t, connect(t, srv), 1)
	waitClosed(t, b, start(t, b, "a", `{"task":"go","keep":true}`), 20*time.Second)
}

// waitFact waits until a fact of a run is there.
func waitFact(t *testing.T, b *bus.Bus, run string, key schema.Key) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for f, err := range b.Follow(ctx, run) {
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if f.Key == key {
			return
		}
	}
}

// meddler takes runs as another host does, and meddles before the message of a parked run is given away.
type meddler struct {
	bus.Host
	meddle func(schema.Taken)
}

func (m meddler) Take(ctx context.Context, msg schema.RunMessage) schema.Taken {
	taken := m.Host.Take(ctx, msg)
	if taken.Act == schema.TakenParked {
		m.meddle(taken)
	}
	return taken
}

// TestNoWakeUpIsLost: what a run waits for comes after its owner has read and before the message is gone.
func TestNoWakeUpIsLost(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b, hosting := connect(t, srv), connect(t, srv)
	c := &company{calls: map[string][]string{"a": {"stranger"}}}
	run := schema.NewID()
	meddle := sync.OnceFunc(func() {
		call := &schema.Call{Run: run, Turn: 1, Tool: "stranger"}
		r := call.Done("from far away")
		if _, err := b.Append(context.Background(), run, call.ResultKey(schema.QueueAgents), &r, schema.Key{}); err != nil {
			t.Error(err)
		}
	})
	hosted(t, hosting, bus.Hosting{Slots: 1, Host: meddler{c.host(t, hosting), func(schema.Taken) { meddle() }}})
	if err := b.StartRun(t.Context(), &schema.Call{Run: run, Tool: "a", Args: `{"task":"go"}`}); err != nil {
		t.Fatal(err)
	}
	if a := answerOf(t, waitClosed(t, b, run, 20*time.Second), 1); a.Text != "a(from far away)" {
		t.Errorf("answer %+v", a)
	}
}

// TestForegroundCallsAgent: a run without a message to give back waits where it is for an agent that it finds in the
// catalog, and sees no agents unless its tools name them.
func TestForegroundCallsAgent(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b, hosting := connect(t, srv), connect(t, srv)
	c := &company{calls: map[string][]string{"a": {"b"}}}
	hosted(t, hosting, bus.Hosting{Slots: 1, Host: c.host(t, hosting), Agents: []schema.Tool{schema.AgentTool(schema.AgentSpec{ID: "b"})}})
	found := b.Select("agents/b")
	if err := found.Wait(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if tools, err := b.Select("*", "b").Tools(t.Context()); err != nil || len(tools) > 0 {
		t.Errorf("tools %v, %v", tools, err)
	}
	a, err := loop.New(loop.Config{Agent: schema.AgentSpec{ID: "a", Limits: schema.DefaultLimits()}, Model: c, Bus: b, Registry: found, Principal: somebody()})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := a.Run(t.Context(), "go")
	if err != nil || answer.Text != "a(b())" {
		t.Errorf("answer %+v, %v", answer, err)
	}
}

// TestChildOfAnUnknownRun: who publishes a child call of a run that no orchestrator has opened gets its result all the
// same, and at once: that there is no such run is the leader's word.
func TestChildOfAnUnknownRun(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	(&company{}).open(t, connect(t, srv), 2)
	stranger(t, srv).say("jc.work.agents.0", []byte(`{"v":1,"run":"elsewhere","turn":2,"index":1,"tool":"a","args":{"task":"go"}}`))
	bustest.Eventually(t, "the call has its result", func() bool {
		facts, err := b.Facts(t.Context(), "elsewhere", 0, schema.KindResult)
		if err != nil || len(facts) == 0 {
			return false
		}
		r, err := schema.DecodeResult(facts[0].Data)
		if err != nil || !r.OK || r.Output != "a()" || facts[0].Key != schema.ResultKey(2, 1, schema.QueueAgents) {
			t.Errorf("%s %+v, %v", facts[0].Key, r, err)
		}
		return true
	})
	waitClosed(t, b, schema.ChildRun("elsewhere", 2, 1, 1), bustest.Patience)
}
