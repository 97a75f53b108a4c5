package loop_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

func family() map[string]map[int]*model.Response {
	ask := func(names ...string) *model.Response {
		r := &model.Response{Finish: schema.FinishCalls}
		for _, n := range names {
			c := schema.RawCall{Name: n, Args: `{"task":"help"}`}
			if n == "count" {
				c.Args = "{}"
			}
			r.Calls = append(r.Calls, c)
		}
		return r
	}
	return map[string]map[int]*model.Response{
		"tester": {1: ask("anna", "count", "bert"), 2: ask("count")},
		"anna":   {1: ask("count")},
	}
}

// TestD12ParentKilledAtEveryStep kills whoever works on a parent or its two children after each step over all of them:
// memory and children are those of an undisturbed run, and each call runs once.
func TestD12ParentKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		messages := func(w *town) (all [][]schema.Message) {
			for _, run := range []string{"r", schema.ChildRun("r", 1, 0, 1), schema.ChildRun("r", 1, 2, 1)} {
				m := w.memory(t, run)
				if m.Closed() == nil || m.Closed().State != "done" {
					t.Errorf("run %s: close %+v, facts %v", run, m.Closed(), w.bus.Keys(run))
				}
				all = append(all, m.Messages())
			}
			return all
		}
		begin := func(left int, after bool) *town {
			w := newTown(left, after, family())
			m := starter("r", `{"task":"go"}`)
			w.post(m)
			w.live(t)
			return w
		}
		whole := begin(forever, false)
		want := messages(whole)
		for child, times := range whole.published {
			if times != 1 {
				t.Errorf("child %s was published %d times", child, times)
			}
		}
		kills := 0
		for _, after := range []bool{false, true} {
			for steps := 0; ; steps++ {
				w := begin(steps, after)
				if w.left < forever/2 {
					break // nobody was killed
				}
				kills++
				if diff := cmp.Diff(want, messages(w)); diff != "" {
					t.Fatalf("killed after %d steps (after: %t): %s", steps, after, diff)
				}
				for call, times := range w.ran {
					if times != 1 {
						t.Errorf("killed after %d steps: call %s ran %d times", steps, call, times)
					}
				}
			}
		}
		t.Logf("%d kills; facts %v", kills, whole.bus.Keys("r"))
		if kills < 40 {
			t.Errorf("only %d kills", kills)
		}
	})
}

// TestParkedTimeIsFree: what a parent waits for its children, here longer than its wall clock, counts against no limit
// of its own.
func TestParkedTimeIsFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTown(forever, false, family())
		w.cfg.Agent.Limits.WallClockMS = 1000
		w.answers["anna"][1] = &model.Response{Calls: []schema.RawCall{waitFor("900ms")}, Finish: schema.FinishCalls}
		w.answers["bert"] = map[int]*model.Response{1: {Calls: []schema.RawCall{waitFor("900ms")}, Finish: schema.FinishCalls}}
		w.post(starter("r", `{"task":"go"}`))
		began := time.Now()
		w.live(t)
		m := w.memory(t, "r")
		if a := m.Answer(1); a == nil || a.Reason != schema.ReasonDone || time.Since(began) < 1500*time.Millisecond {
			t.Errorf("answer %+v after %v", a, time.Since(began))
		}
	})
}
