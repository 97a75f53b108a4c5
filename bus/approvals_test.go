package bus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// askedFor is how long a question of an agent that serveWary serves waits for its verdict.
const askedFor = 48 * time.Hour

// wary asks about every call of pay.
type wary struct{}

func (wary) Decide(_ context.Context, c *schema.TurnCall) schema.Decision {
	if c.Tool == "pay" {
		return schema.Decision{Action: schema.ActionAsk, Rule: "wary", Text: "it costs money"}
	}
	return schema.Decision{}
}

func (wary) Settle(context.Context, *schema.TurnCall, *schema.Result) (string, bool) {
	return "", false
}

// payTwice pays twice in its first turn.
func payTwice(ctx context.Context, req *model.Request) (*model.Response, error) {
	if req.Turn > 1 {
		return looptest.Text("done")(ctx, req)
	}
	return looptest.Calls(schema.RawCall{Name: "pay", Args: `{"n":1}`}, schema.RawCall{Name: "pay", Args: `{"n":2}`})(ctx, req)
}

// serveWary works on runs of an agent that pays, until stop is called.
func serveWary(t *testing.T, b *bus.Bus) (stop func()) {
	t.Helper()
	tools := b.Select("pay")
	h := newHost(t, b, nil, nil, func(cfg *loop.HostConfig) {
		cfg.Guards = []loop.Guard{wary{}}
		cfg.Find = func(string) (schema.AgentSpec, bool) {
			spec, _ := anyAgent("helper")
			spec.Governance = &schema.Governance{Policy: &schema.Policy{ExpiresMS: askedFor.Milliseconds()}}
			return spec, true
		}
		cfg.Equip = func(ctx context.Context, _ schema.AgentSpec) (loop.Model, loop.Registry, error) {
			return looptest.Always(payTwice), tools, tools.Wait(ctx, 20*time.Second)
		}
	})
	return hosted(t, b, bus.Hosting{Slots: 4, Host: h})
}

// waitAsked returns the questions of a run, once there are n.
func waitAsked(t *testing.T, b *bus.Bus, run string, n int) (list []bus.Approval) {
	t.Helper()
	bustest.Eventually(t, "all are asked about", func() bool {
		list = nil
		for a, err := range b.Approvals(t.Context()) {
			if err == nil && a.Run == run {
				list = append(list, a)
			}
		}
		return len(list) == n
	})
	slices.SortFunc(list, func(a, b bus.Approval) int { return a.Index - b.Index })
	return list
}

// TestD07AnsweredFromAnywhere: the orchestrator that asked is gone; the questions are still there, they are answered by a
// process that works on nothing, out of order, and another orchestrator goes on.
func TestD07AnsweredFromAnywhere(t *testing.T) {
	t.Parallel()
	srv := server(t)
	var paid atomic.Int32
	set, err := executor.NewSet("bank", executor.Func("pay", "Pays.", func(_ context.Context, in struct {
		N int `json:"n"`
	},
	) (int, error) {
		paid.Add(1)
		return in.N, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	serve(t, connect(t, srv), bus.Worker{Queue: "bank", Slots: 4, Tools: set})
	first := connect(t, srv)
	stop := serveWary(t, first)
	run := startRun(t, first)
	waitAsked(t, first, run, 2)
	stop()
	person := connect(t, srv)
	list := waitAsked(t, person, run, 2)
	if a := list[0]; a.Args != `{"n":1}` || a.Question.Text != "it costs money" || a.Principal.ID != "tester" || a.Agent != "helper" {
		t.Errorf("%+v", a)
	}
	serveWary(t, connect(t, srv))
	for _, args := range []schema.JSONText{`{"n":"all"}`, `{"m":1}`, "[]", "{"} {
		var bad *schema.Error
		if err := person.Decide(t.Context(), list[1], schema.Verdict{Decision: schema.VerdictApprove, By: "ada", Args: args}); !errors.As(err, &bad) || bad.Type != schema.InvalidArguments {
			t.Errorf("arguments %s: %v", args, err)
		}
	}
	if err := person.Decide(t.Context(), list[1], schema.Verdict{Decision: schema.VerdictApprove, By: "ada"}); err != nil {
		t.Fatal(err)
	}
	if err := person.Decide(t.Context(), list[1], schema.Verdict{Decision: schema.VerdictDeny, By: "bob"}); !errors.Is(err, bus.ErrDecided) {
		t.Errorf("a second verdict: %v", err)
	}
	if err := person.Decide(t.Context(), list[0], schema.Verdict{Decision: schema.VerdictDeny, By: "ada", Why: "too much"}); err != nil {
		t.Fatal(err)
	}
	facts := waitClosed(t, person, run, 20*time.Second)
	if a := answerOf(t, facts, 1); a.Text != "done" || paid.Load() != 1 {
		t.Errorf("answer %+v, paid %d times", a, paid.Load())
	}
	if got, err := person.ApprovalOf(t.Context(), run, 1, 0); err != nil || got.Verdict == nil || got.Verdict.Why != "too much" || !got.Closed {
		t.Errorf("%+v, %v", got, err)
	}
	if err := person.Decide(t.Context(), list[0], schema.Verdict{Decision: schema.VerdictApprove}); !errors.Is(err, bus.ErrRunClosed) && !errors.Is(err, bus.ErrDecided) {
		t.Errorf("a verdict after the end: %v", err)
	}
	if _, err := person.ApprovalOf(t.Context(), run, 1, 7); !errors.Is(err, bus.ErrNoAsk) {
		t.Errorf("a call that is not there: %v", err)
	}
	for a, err := range person.Approvals(t.Context()) {
		t.Errorf("still open: %+v, %v", a, err)
	}
}

// TestD11TooLateIsSaid: who answers after the end of the time is told so, and nothing is written.
func TestD11TooLateIsSaid(t *testing.T) {
	t.Parallel()
	b := connect(t, server(t))
	a := bus.Approval{Run: "r", Turn: 1, Ask: 1, Question: schema.Ask{ExpiresMS: b.Now().Add(-time.Second).UnixMilli()}}
	if err := b.Decide(t.Context(), a, schema.Verdict{Decision: schema.VerdictApprove}); !errors.Is(err, bus.ErrExpired) {
		t.Errorf("error %v", err)
	}
	if facts, err := b.Facts(t.Context(), "r", 0); err != nil || len(facts) > 0 {
		t.Errorf("facts %v, %v", facts, err)
	}
}

// untrue is an open fact that nobody can read.
type untrue struct {
	schema.Payload
	Agent string `msgpack:"agent"`
}

// TestApprovalsAmongStrangers: facts that a stranger wrote neither hide the questions of others nor take their place.
func TestApprovalsAmongStrangers(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	set, err := executor.NewSet("bank", executor.Func("pay", "Pays.", func(context.Context, struct {
		N int `json:"n"`
	},
	) (int, error) {
		return 0, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	serve(t, b, bus.Worker{Queue: "bank", Slots: 4, Tools: set})
	serveWary(t, b)
	run := startRun(t, b)
	waitAsked(t, b, run, 2)
	strange := []struct {
		run  string
		key  schema.Key
		fact schema.Encodable
	}{
		{run, schema.AskKey(1, 0, 9), &schema.Ask{Tool: "echo", Queue: "bank", ExpiresMS: 1 << 50}}, // behind a gap
		{"unreadable", schema.OpenKey(), &untrue{Agent: "pay"}},
		{"unreadable", schema.AskKey(1, 0, 1), &schema.Ask{Tool: "pay", Queue: "bank", ExpiresMS: 1 << 50}},
		{"unreadable", schema.TurnKey(1), &schema.Turn{N: 1, Calls: []schema.TurnCall{{Tool: "pay"}}}},
	}
	for _, s := range strange {
		if _, err := b.Append(t.Context(), s.run, s.key, s.fact, schema.Key{}); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for a, err := range b.Approvals(t.Context()) {
		if err != nil || a.Run != run || a.Ask != 1 || a.Question.Tool != "pay" {
			t.Errorf("%+v, %v", a, err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d questions, want the 2 that are asked", n)
	}
}

// TestManyQuestionsOfOneRun: the list reads a run once, however many of its calls wait.
func TestManyQuestionsOfOneRun(t *testing.T) {
	t.Parallel()
	const calls = 60
	b := connect(t, server(t))
	openRun(t, b, "r")
	turn := &schema.Turn{N: 1}
	for i := range calls {
		turn.Calls = append(turn.Calls, schema.TurnCall{Tool: "pay", Queue: "bank", Args: schema.JSONText(fmt.Sprintf(`{"n":%d}`, i))})
	}
	put := func(key schema.Key, fact schema.Encodable) {
		t.Helper()
		if _, err := b.Append(t.Context(), "r", key, fact, schema.Key{}); err != nil {
			t.Fatal(err)
		}
	}
	put(schema.TurnKey(1), turn)
	for i := range calls {
		ask := schema.NewAsk(&turn.Calls[i], schema.Decision{Action: schema.ActionAsk}, "")
		ask.ExpiresMS = 1 << 50
		put(schema.AskKey(1, i, 1), ask)
	}
	put(schema.VerdictKey(1, 7, 1), &schema.Verdict{Decision: schema.VerdictDeny})
	before := b.Received()
	var got []int
	for a, err := range b.Approvals(t.Context()) {
		if err != nil || a.Args != turn.Calls[a.Index].Args || a.Verdict != nil {
			t.Errorf("%+v, %v", a, err)
		}
		got = slices.Insert(got, 0, a.Index)
	}
	if len(got) != calls-1 || !slices.IsSorted(got) || slices.Contains(got, 7) {
		t.Errorf("calls %v, want all but 7, newest first", got)
	}
	if n := b.Received() - before; n > 4*calls {
		t.Errorf("%d messages were read for %d questions", n, calls)
	}
}
