package loop_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// careful asks about the calls of a tool under a rule, and is asked again once they are approved.
type careful struct {
	tool string
	now  schema.Decision // of a call that was approved; zero: as before
}

func (g careful) Decide(_ context.Context, c *schema.TurnCall) schema.Decision {
	if c.Tool == g.tool {
		return schema.Decision{Action: schema.ActionAsk, Rule: "careful", Text: "it costs money"}
	}
	return schema.Decision{}
}

func (careful) Settle(context.Context, *schema.TurnCall, *schema.Result) (string, bool) {
	return "", false
}

func (g careful) Authorize(ctx context.Context, c *schema.TurnCall) schema.Decision {
	if g.now.Action != "" {
		return g.now
	}
	return g.Decide(ctx, c)
}

var careful1 = []loop.Guard{careful{tool: "count"}}

// verdict decides on question k about call i of turn 1 as a person would.
func verdict(t *testing.T, b *looptest.Bus, run string, i, k int, change func(*schema.Verdict)) error {
	t.Helper()
	key := schema.AskKey(1, i, k)
	var a schema.Ask
	if !b.Fact(run, key, &a) {
		t.Fatalf("%s is not asked: %v", key, b.Keys(run))
	}
	v := &schema.Verdict{Decision: schema.VerdictApprove, Digest: a.Digest(run, key), By: "ada", AtMS: time.Now().UnixMilli()}
	if change != nil {
		change(v)
	}
	_, err := b.Append(t.Context(), run, schema.VerdictKey(1, i, k), v, schema.CloseKey())
	return err
}

func deny(v *schema.Verdict) { v.Decision, v.Why = schema.VerdictDeny, "not today" }

// asking is a fleet whose agent calls count, about which a person is asked.
func asking(names ...string) *hosting {
	h := newHosting(map[int]*model.Response{1: {Calls: raw(names...), Finish: schema.FinishCalls}})
	h.cfg.Guards = careful1
	return h
}

// take has an owner with the rig's guards work on the run as far as it goes.
func (h *hosting) take(t *testing.T, m schema.RunMessage) schema.Taken {
	t.Helper()
	host, err := loop.NewHost(loop.HostConfig{
		Config: loop.Config{Bus: h.bus, Principal: somebody(), Guards: h.cfg.Guards, Events: h.events.Add},
		Find:   func(string) (schema.AgentSpec, bool) { return h.cfg.Agent, true },
		Equip:  func(context.Context, schema.AgentSpec) (loop.Model, loop.Registry, error) { return h, h.bus, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return host.Take(t.Context(), m)
}

func wake(run string) schema.RunMessage { return schema.RunMessage{Run: run, Seq: 9, Delivery: 1} }

func (h *hosting) outputs(t *testing.T, run string) []string {
	t.Helper()
	var out []string
	for _, m := range h.memory(t, run).Messages() {
		if m.Role == schema.RoleTool {
			out = append(out, m.Text)
		}
	}
	return out
}

// TestD01SiblingsDoNotRunAgain: a turn of three, two of which ask; the owner stops while they wait, one is approved and one
// refused, and another owner goes on.
func TestD01SiblingsDoNotRunAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := asking("echo", "count", "count")
		got := h.take(t, starter("r", `{"task":"go"}`))
		want := []schema.Key{schema.VerdictKey(1, 1, 1), schema.VerdictKey(1, 2, 1)}
		if got.Act != schema.TakenParked || !slices.Contains(got.Await, want[0]) || !slices.Contains(got.Await, want[1]) || got.At.IsZero() {
			t.Fatalf("%+v, want it parked until one of %v", got, want)
		}
		if h.memory(t, "r").Result(1, 0) == nil || h.ran["r/1.1"]+h.ran["r/1.2"] != 0 {
			t.Fatalf("facts %v: the first call has run, the others have not", h.bus.Keys("r"))
		}
		if err := verdict(t, h.bus, "r", 2, 1, deny); err != nil {
			t.Fatal(err)
		}
		if got := h.take(t, wake("r")); got.Act != schema.TakenParked {
			t.Fatalf("%+v, want it to wait for the other one", got)
		}
		if err := verdict(t, h.bus, "r", 1, 1, nil); err != nil {
			t.Fatal(err)
		}
		if got := h.take(t, wake("r")); got.Act != schema.TakenDone {
			t.Fatalf("%+v", got)
		}
		if diff := cmp.Diff([]string{"{}", "1.1", "DENIED: not today"}, h.outputs(t, "r")); diff != "" {
			t.Error(diff)
		}
		if h.ran["r/1.1"] != 1 || h.ran["r/1.2"] != 0 {
			t.Errorf("runs %v", h.ran)
		}
	})
}

// TestD02AnsweredInAnyOrder: three questions at once, answered out of order, one twice, one with other arguments.
func TestD02AnsweredInAnyOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := asking("count", "echo", "count")
		h.cfg.Guards = []loop.Guard{careful{tool: "count"}, careful{tool: "echo"}}
		h.take(t, starter("r", `{"task":"go"}`))
		if n := len(h.events.Of(loop.EventApprovalRequested)); n != 3 {
			t.Fatalf("%d questions", n)
		}
		for _, err := range []error{verdict(t, h.bus, "r", 2, 1, nil), verdict(t, h.bus, "r", 0, 1, nil)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := verdict(t, h.bus, "r", 2, 1, deny); !errors.Is(err, schema.ErrExists) {
			t.Errorf("a second verdict: %v", err)
		}
		if err := verdict(t, h.bus, "r", 1, 1, func(v *schema.Verdict) { v.Args = `{ "n": 2 }` }); err != nil {
			t.Fatal(err)
		}
		if got := h.take(t, wake("r")); got.Act != schema.TakenDone {
			t.Fatalf("%+v", got)
		}
		if diff := cmp.Diff([]string{"1.0", `{"n":2}`, "1.2"}, h.outputs(t, "r")); diff != "" {
			t.Error(diff)
		}
	})
}

// TestD07AnsweredAfterARestart: another owner neither asks again nor forgets, and the call is that of the turn.
func TestD07AnsweredAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := asking("count")
		for _, m := range []schema.RunMessage{starter("r", `{"task":"go"}`), wake("r"), wake("r")} {
			if got := h.take(t, m); got.Act != schema.TakenParked {
				t.Fatalf("%+v", got)
			}
			time.Sleep(time.Hour)
		}
		if _, k := h.memory(t, "r").Ask(1, 0); k != 1 {
			t.Errorf("asked %d times", k)
		}
		if err := verdict(t, h.bus, "r", 0, 1, nil); err != nil {
			t.Fatal(err)
		}
		if got := h.take(t, wake("r")); got.Act != schema.TakenDone || h.ran["r/1.0"] != 1 {
			t.Errorf("%+v, ran %v", got, h.ran)
		}
		if a := h.memory(t, "r").Answer(1); a.Reason != schema.ReasonDone {
			t.Errorf("answer %+v: waiting counts against no limit", a)
		}
	})
}

// TestD09PolicyChangedMeanwhile: what was declined never runs; what was approved runs once, unless the policy is stricter now.
func TestD09PolicyChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		guards []loop.Guard
		change func(*schema.Verdict)
		reads  string // "": asked again
	}{
		"approved":                    {careful1, nil, "1.0"},
		"approved, policy gone":       {nil, nil, "1.0"},
		"declined, policy gone":       {nil, deny, "DENIED: not today"},
		"approved, denied now":        {[]loop.Guard{careful{tool: "count", now: schema.Decision{Action: schema.ActionDeny, Text: "closed"}}}, nil, "DENIED: closed"},
		"approved, guide now":         {[]loop.Guard{careful{tool: "count", now: schema.Decision{Action: schema.ActionGuide, Text: "smaller."}}}, nil, "GUIDANCE: smaller. Adjust the parameters and retry."},
		"approved, another rule asks": {[]loop.Guard{careful{tool: "count", now: schema.Decision{Action: schema.ActionAsk, Rule: "stricter"}}}, nil, ""},
		"approval of another call":    {careful1, func(v *schema.Verdict) { v.Digest = schema.Digest(nil) }, "DENIED: the approval was for another call than this one"},
		"approval without a digest":   {careful1, func(v *schema.Verdict) { v.Digest = "" }, "DENIED: the approval was for another call than this one"},
		"arguments that are none":     {careful1, func(v *schema.Verdict) { v.Args = "[]" }, ""},
		"arguments that a guard refuses": {
			[]loop.Guard{careful{tool: "count", now: schema.Decision{Action: schema.ActionInvalid, Type: schema.InvalidArguments, Text: "x is bound"}}}, func(v *schema.Verdict) { v.Args = `{"x":1}` }, "",
		},
		"an answer that nobody can read": {careful1, func(v *schema.Verdict) { v.Decision = "perhaps" }, "DENIED: a person refused this call"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := asking("count")
				h.take(t, starter("r", `{"task":"go"}`))
				if err := verdict(t, h.bus, "r", 0, 1, c.change); err != nil {
					t.Fatal(err)
				}
				h.cfg.Guards = c.guards
				got := h.take(t, wake("r"))
				if c.reads == "" {
					ask, k := h.memory(t, "r").Ask(1, 0)
					if got.Act != schema.TakenParked || k != 2 || ask.Edited != "" || ask.Args != schema.Digest([]byte("{}")) {
						t.Errorf("%+v, asked %d times, %+v", got, k, ask)
					}
					return
				}
				if diff := cmp.Diff([]string{c.reads}, h.outputs(t, "r")); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// A tool that has changed since it was asked about is another tool.
func TestChangedToolAsksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := asking("count")
		h.take(t, starter("r", `{"task":"go"}`))
		if err := verdict(t, h.bus, "r", 0, 1, nil); err != nil {
			t.Fatal(err)
		}
		h.bus.Tool(schema.Tool{Name: "count", Description: "another", Parameters: `{"type":"object","properties":{"n":{}}}`},
			func(context.Context, *schema.Call) (string, error) { return "new", nil })
		if got := h.take(t, wake("r")); got.Act != schema.TakenParked {
			t.Fatalf("%+v", got)
		}
		if err := verdict(t, h.bus, "r", 0, 2, nil); err != nil {
			t.Fatal(err)
		}
		if got := h.take(t, wake("r")); got.Act != schema.TakenDone {
			t.Fatalf("%+v", got)
		}
		if diff := cmp.Diff([]string{"new"}, h.outputs(t, "r")); diff != "" {
			t.Error(diff)
		}
	})
}

// A question that names another tool than the call, which somebody wrote in place of the owner, is not what runs: the owner
// asks about the call itself.
func TestForgedQuestionAsksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := asking("count")
		forged := &schema.Ask{Tool: "echo", Queue: looptest.Queue, Args: schema.Digest([]byte("{}")), Rule: "careful", Text: "it is harmless", ExpiresMS: time.Now().Add(time.Hour).UnixMilli()}
		tools, err := h.bus.Tools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools {
			if tool.Name == "count" {
				forged.Schema = tool.Digest
			}
		}
		if _, err := h.bus.Append(t.Context(), "r", schema.AskKey(1, 0, 1), forged, schema.Key{}); err != nil {
			t.Fatal(err)
		}
		h.take(t, starter("r", `{"task":"go"}`))
		if err := verdict(t, h.bus, "r", 0, 1, nil); err != nil {
			t.Fatal(err)
		}
		if got := h.take(t, wake("r")); got.Act != schema.TakenParked || h.ran["r/1.0"] != 0 {
			t.Fatalf("%+v, ran %v: want the call to be asked about", got, h.ran)
		}
		if a, k := h.memory(t, "r").Ask(1, 0); k != 2 || a.Tool != "count" {
			t.Errorf("question %d: %+v", k, a)
		}
	})
}

// TestD11AnsweredTooLate: the owner's verdict stands, and a later one is refused.
func TestD11AnsweredTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := asking("count")
		h.cfg.Agent.Governance = &schema.Governance{Policy: &schema.Policy{ExpiresMS: time.Hour.Milliseconds()}}
		got := h.take(t, starter("r", `{"task":"go"}`))
		time.Sleep(time.Until(got.At))
		if got := h.take(t, wake("r")); got.Act != schema.TakenDone {
			t.Fatalf("%+v", got)
		}
		if err := verdict(t, h.bus, "r", 0, 1, nil); err == nil {
			t.Error("an answer after the end was taken")
		}
		if diff := cmp.Diff([]string{"DENIED: nobody approved this call in time"}, h.outputs(t, "r")); diff != "" {
			t.Error(diff)
		}
	})
}

// An approval that was written after the time, before the owner looked, approves nothing.
func TestD11ApprovedAfterTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := asking("count")
		got := h.take(t, starter("r", `{"task":"go"}`))
		time.Sleep(time.Until(got.At) + time.Second)
		if err := verdict(t, h.bus, "r", 0, 1, nil); err != nil {
			t.Fatal(err)
		}
		h.take(t, wake("r"))
		if diff := cmp.Diff([]string{"DENIED: nobody approved this call in time"}, h.outputs(t, "r")); diff != "" || len(h.ran) > 0 {
			t.Error(diff)
		}
	})
}

// A refusal of a later guard is heard although an earlier one asks.
func TestDenyBeatsAsk(t *testing.T) {
	t.Parallel()
	r := newRig(calls("ok"), looptest.Text("done"))
	r.cfg.Guards = []loop.Guard{careful{tool: "ok"}, by(schema.ActionDeny, "never")}
	_, run := r.run(t)
	if diff := cmp.Diff([]string{"DENIED: never"}, texts(results(run))); diff != "" {
		t.Error(diff)
	}
}

// A start that the worker of another queue writes says nothing about the call: what was approved is authorised as ever.
func TestStartOnAnotherQueueFreesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := asking("count")
		h.take(t, starter("r", `{"task":"go"}`))
		if _, err := h.bus.Append(t.Context(), "r", schema.BeginKey(1, 0, "elsewhere"), &schema.Begin{Instance: "w", Seq: 1}, schema.Key{}); err != nil {
			t.Fatal(err)
		}
		if err := verdict(t, h.bus, "r", 0, 1, nil); err != nil {
			t.Fatal(err)
		}
		h.cfg.Guards = []loop.Guard{careful{tool: "count", now: schema.Decision{Action: schema.ActionDeny, Text: "closed"}}}
		h.take(t, wake("r"))
		if diff := cmp.Diff([]string{"DENIED: closed"}, h.outputs(t, "r")); diff != "" || len(h.ran) > 0 {
			t.Errorf("ran %v: %s", h.ran, diff)
		}
	})
}

// A call that began before anybody had decided, be it published around the orchestrator, ends as one that is cancelled when
// it is refused or the run is stopped: its run goes on.
func TestRefusedCallHasBegun(t *testing.T) {
	t.Parallel()
	for name, decide := range map[string]func(t *testing.T, h *hosting) error{
		"refused": func(t *testing.T, h *hosting) error { return verdict(t, h.bus, "r", 0, 1, deny) },
		"stopped": func(t *testing.T, h *hosting) error {
			_, err := h.bus.Append(t.Context(), "r", schema.CtlKey(2), &schema.Ctl{Act: schema.CtlStop}, schema.Key{})
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := asking("count", "echo")
			h.take(t, starter("r", `{"task":"go"}`))
			if _, err := h.bus.Append(t.Context(), "r", schema.BeginKey(1, 0, looptest.Queue), &schema.Begin{Instance: "w", Seq: 1}, schema.Key{}); err != nil {
				t.Fatal(err)
			}
			if err := decide(t, h); err != nil {
				t.Fatal(err)
			}
			if got := h.take(t, wake("r")); got.Act != schema.TakenDone || len(h.ran) > 0 {
				t.Errorf("%s: %+v, ran %v", name, got, h.ran)
			}
		})
	}
}
