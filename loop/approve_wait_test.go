package loop_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/schema"
)

// An owner in the foreground waits; the answer comes from elsewhere, and siblings run meanwhile.
func TestApprovedInTheForeground(t *testing.T) {
	t.Parallel()
	for _, hint := range []bool{true, false} { // without it the leader is asked now and then
		synctest.Test(t, func(t *testing.T) {
			h := asking("count", "echo", "count")
			h.cfg.Agent.Parallel.Calls = false // one after the other, but nobody waits for a person
			h.cfg.Model, h.cfg.Registry = h, h.bus
			run := h.start(t)
			done := make(chan schema.Answer)
			go func() {
				answer, err := run.Say(t.Context(), "go")
				if err != nil {
					t.Error(err)
				}
				done <- answer
			}()
			synctest.Wait()
			var got schema.Result
			if !h.bus.Fact(run.ID(), schema.ResultKey(1, 1, looptest.Queue), &got) || got.Output != "{}" {
				t.Errorf("the sibling waits: %v", h.bus.Keys(run.ID()))
			}
			h.bus.Deaf = !hint
			time.Sleep(30 * time.Minute)
			for _, err := range []error{verdict(t, h.bus, run.ID(), 2, 1, nil), verdict(t, h.bus, run.ID(), 0, 1, deny)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if answer := <-done; answer.Reason != schema.ReasonDone {
				t.Errorf("answer %+v", answer)
			}
			h.bus.Deaf = false
			if err := run.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{"DENIED: not today", "{}", "1.2"}, texts(results(run))); diff != "" {
				t.Error(diff)
			}
			h.checkEvents(t)
		})
	}
}

// Who leaves a run that waits for people alone leaves it open.
func TestInterruptedWhileItWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := asking("count")
		h.cfg.Model, h.cfg.Registry = h, h.bus
		run := h.start(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := run.Say(ctx, "go")
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, loop.ErrParked) {
			t.Fatalf("error %v", err)
		}
		if m := h.memory(t, run.ID()); m.Ctls() != 1 || m.Closed() != nil || m.Answers() != 0 {
			t.Errorf("facts %v", h.bus.Keys(run.ID()))
		}
		if err := verdict(t, h.bus, run.ID(), 0, 1, nil); err != nil {
			t.Fatal(err)
		}
		if got := h.take(t, wake(run.ID())); got.Act != schema.TakenDone || h.ran[run.ID()+"/1.0"] != 1 {
			t.Errorf("%+v, ran %v", got, h.ran)
		}
	})
}

// Who leaves in the moment in which the question is told leaves it open, too.
func TestInterruptedAsSoonAsItAsks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := asking("count")
		h.cfg.Model, h.cfg.Registry = h, h.bus
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		h.cfg.Events = func(e loop.Event) {
			if e.Type == loop.EventApprovalRequested {
				cancel()
				time.Sleep(time.Second) // virtual: all that follows from it happens meanwhile
			}
		}
		run := h.start(t)
		if _, err := run.Say(ctx, "go"); !errors.Is(err, loop.ErrParked) {
			t.Errorf("error %v", err)
		}
		if m := h.memory(t, run.ID()); m.Ctls() != 1 || m.Closed() != nil {
			t.Errorf("facts %v", h.bus.Keys(run.ID()))
		}
	})
}

// A stopped run settles its questions first: nobody's answer starts a call any more.
func TestStoppedWhileItWaits(t *testing.T) {
	t.Parallel()
	for _, foreground := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			h := asking("count")
			h.cfg.Model, h.cfg.Registry = h, h.bus
			id := "r"
			done := make(chan error, 1)
			if foreground {
				run := h.start(t)
				id = run.ID()
				go func() {
					_, err := run.Say(t.Context(), "go")
					done <- err
				}()
				synctest.Wait()
			} else {
				h.take(t, starter("r", `{"task":"go"}`))
			}
			if _, err := h.bus.Append(t.Context(), id, schema.CtlKey(2), &schema.Ctl{Act: schema.CtlStop, Why: "enough"}, schema.Key{}); err != nil {
				t.Fatal(err)
			}
			if foreground {
				if err := <-done; !errors.Is(err, loop.ErrStopped) {
					t.Errorf("error %v", err)
				}
			} else if got := h.take(t, wake("r")); got.Act != schema.TakenDone {
				t.Errorf("%+v", got)
			}
			m := h.memory(t, id)
			v, r := m.Verdict(1, 0, 1), m.Result(1, 0)
			if v == nil || v.Decision != schema.VerdictExpired || r == nil || r.Error.Type != schema.Cancelled || m.Closed() == nil || len(h.ran) > 0 {
				t.Errorf("verdict %+v, result %+v, facts %v", v, r, h.bus.Keys(id))
			}
		})
	}
}

// TestD12KilledWhileAsking kills the owner after each of its steps through a turn that a person approves.
func TestD12KilledWhileAsking(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kills := 0
		for steps := 0; ; steps++ {
			h := asking("count", "echo", "count")
			approve := func() { // whoever is asked says yes to what can be asked
				for i := range 3 {
					var a schema.Ask
					if key := schema.AskKey(1, i, 1); h.bus.Fact("r", key, &a) {
						_ = verdict(t, h.bus, "r", i, 1, nil)
					}
				}
			}
			host, err := loop.NewHost(loop.HostConfig{
				Config: loop.Config{Bus: &mortal{Bus: h.bus, left: steps}, Principal: somebody(), Guards: careful1},
				Find:   func(string) (schema.AgentSpec, bool) { return h.cfg.Agent, true },
				Equip:  func(context.Context, schema.AgentSpec) (loop.Model, loop.Registry, error) { return h, h.bus, nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			first := host.Take(t.Context(), starter("r", `{"task":"go"}`))
			approve()
			if first.Act == schema.TakenParked {
				first = host.Take(t.Context(), wake("r"))
			}
			if first.Act == schema.TakenDone {
				break
			}
			kills++
			last := h.take(t, starter("r", `{"task":"go"}`))
			if last.Act == schema.TakenParked {
				approve()
				last = h.take(t, wake("r"))
			}
			if diff := cmp.Diff([]string{"1.0", "{}", "1.2"}, h.outputs(t, "r")); diff != "" || last.Act != schema.TakenDone {
				t.Errorf("after %d steps: %+v, %s; facts %v", steps, last, diff, h.bus.Keys("r"))
			}
			for call, times := range h.ran {
				if times != 1 {
					t.Errorf("after %d steps: call %s ran %d times", steps, call, times)
				}
			}
		}
		if kills < 12 {
			t.Errorf("only %d kills", kills)
		}
	})
}

// A call that an earlier owner has had started is not decided about again, whatever the policy says now.
func TestBegunIsNotDecidedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := asking("count")
		h.take(t, starter("r", `{"task":"go"}`))
		if err := verdict(t, h.bus, "r", 0, 1, nil); err != nil {
			t.Fatal(err)
		}
		begin := schema.BeginKey(1, 0, looptest.Queue)
		if _, err := h.bus.Append(t.Context(), "r", begin, &schema.Begin{Instance: "w"}, schema.Key{}); err != nil {
			t.Fatal(err)
		}
		h.cfg.Guards = []loop.Guard{careful{tool: "count", now: schema.Decision{Action: schema.ActionDeny, Text: "closed"}}}
		h.take(t, wake("r"))
		if out := h.outputs(t, "r"); len(out) != 1 || out[0] == "DENIED: closed" {
			t.Errorf("outputs %q", out)
		}
		if _, k := h.memory(t, "r").Ask(1, 0); k != 1 {
			t.Errorf("asked %d times", k)
		}
	})
}

// What a person thought about counts against no time of a call of an agent.
func TestApprovalCostsAnAgentNoTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := asking("aide")
		h.bus.Tool(schema.Tool{Name: "aide", Queue: schema.QueueAgents, TimeoutMS: time.Minute.Milliseconds()},
			func(context.Context, *schema.Call) (string, error) { return "helped", nil })
		h.cfg.Guards = []loop.Guard{careful{tool: "aide"}}
		h.take(t, starter("r", `{"task":"go"}`))
		time.Sleep(time.Hour)
		if err := verdict(t, h.bus, "r", 0, 1, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		h.take(t, wake("r"))
		if diff := cmp.Diff([]string{"helped"}, h.outputs(t, "r")); diff != "" {
			t.Error(diff)
		}
	})
}
