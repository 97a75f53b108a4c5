package loop_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// flaky makes anna's model fail in its first runs.
func (w *town) flaky(times int) {
	var mu sync.Mutex
	failed := map[string]bool{}
	w.think = func(_ context.Context, req *model.Request) (*model.Response, error, bool) {
		mu.Lock()
		defer mu.Unlock()
		if req.Agent != "anna" {
			return nil, nil, false
		}
		for attempt := 1; attempt <= times; attempt++ {
			run := schema.ChildRun("r", 1, 0, attempt)
			var a schema.Answer
			if w.bus.Fact(run, schema.OpenKey(), &schema.Open{}) && !w.bus.Fact(run, schema.AnswerKey(1), &a) {
				failed[run] = true
				return nil, broken, true
			}
		}
		return nil, nil, false
	}
}

// TestHandoffRetries: each attempt is a run of its own, and the parent's result is that of the last one.
func TestHandoffRetries(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		policy   schema.Handoff
		failures int
		runs     int
		want     string
	}{
		"no retry by default": {schema.Handoff{}, 1, 1, "the model is broken"},
		"third attempt":       {schema.Handoff{MaxRetries: 2}, 2, 3, `"output":"anna after 2 messages","steps":1`},
		"all fail":            {schema.Handoff{MaxRetries: 1}, 5, 2, "the model is broken"},
		"fallback": {
			schema.Handoff{MaxRetries: 1, OnError: schema.HandoffFallback, Fallback: "ask me later"},
			5, 2,
			"Fallback instead of the sub-agent's answer: ask me later",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := handing(forever, false, tt.policy, map[string]map[int]*model.Response{"tester": {1: handOver("subagent_anna")}})
				w.flaky(tt.failures)
				m := w.go1(t)
				r := m.Result(1, 0)
				if !strings.Contains(r.Output, tt.want) || r.Spent.Attempts != tt.runs || r.OK != strings.Contains(tt.want, "steps") {
					t.Errorf("result %+v", r)
				}
				for attempt := 1; attempt <= 5; attempt++ {
					run := schema.ChildRun("r", 1, 0, attempt)
					if keys := w.bus.Keys(run); (len(keys) > 0) != (attempt <= tt.runs) {
						t.Errorf("attempt %d: facts %v", attempt, keys)
					}
					var end schema.Close
					if attempt <= tt.runs && !w.bus.Fact(run, schema.CloseKey(), &end) {
						t.Errorf("attempt %d is not closed", attempt)
					}
				}
			})
		})
	}
}

// TestHandoffRetriesSurviveKills kills whoever works on a parent or an attempt after each step over all of them: the
// parent's memory is that of an undisturbed run, and there are as many attempts.
func TestHandoffRetriesSurviveKills(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := func(left int, after bool) (*town, []schema.Message) {
			w := handing(left, after, schema.Handoff{MaxRetries: 2}, map[string]map[int]*model.Response{"tester": {1: handOver("subagent_anna", "count")}})
			w.answers["tester"][1].Calls[1].Args = "{}"
			w.flaky(2)
			return w, w.go1(t).Messages()
		}
		_, want := begin(forever, false)
		kills := 0
		for _, after := range []bool{false, true} {
			for steps := 0; ; steps++ {
				w, got := begin(steps, after)
				if w.left < forever/2 {
					break // nobody was killed
				}
				kills++
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("killed after %d steps (after: %t): %s", steps, after, diff)
				}
				if keys := w.bus.Keys(schema.ChildRun("r", 1, 0, 4)); len(keys) > 0 {
					t.Errorf("killed after %d steps: a fourth attempt has facts %v", steps, keys)
				}
			}
		}
		t.Logf("%d kills", kills)
		if kills < 30 {
			t.Errorf("only %d kills", kills)
		}
	})
}

// TestStopBetweenAttempts stops what is open of a call after its owner was killed at each step: none of its runs stays
// open.
func TestStopBetweenAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stops, killed := 0, true
		for steps := 0; killed; steps++ {
			killed = false
			w := handing(steps, false, schema.Handoff{MaxRetries: 2}, map[string]map[int]*model.Response{"tester": {1: handOver("subagent_anna")}})
			w.flaky(3)
			opened := func() (runs []string) {
				for attempt := 1; attempt <= 3; attempt++ {
					if run := schema.ChildRun("r", 1, 0, attempt); w.bus.Fact(run, schema.OpenKey(), &schema.Open{}) {
						runs = append(runs, run)
					}
				}
				return runs
			}
			w.lost = func() {
				killed = true
				for _, run := range opened()[:min(1, len(opened()))] {
					stops++
					w.stop(run)
				}
			}
			w.go1(t)
			for _, run := range opened() {
				if !w.bus.Fact(run, schema.CloseKey(), &schema.Close{}) {
					t.Errorf("killed after %d steps: run %s is open: %v", steps, run, w.bus.Keys(run))
				}
			}
		}
		if stops < 10 {
			t.Errorf("only %d stops", stops)
		}
	})
}

// TestHandoffTimeout: an attempt ends at its time, also one that is parked, and what it called with it.
func TestHandoffTimeout(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]map[int]*model.Response{
		"a tool":        {1: {Calls: []schema.RawCall{waitFor("1h")}, Finish: schema.FinishCalls}},
		"another agent": {1: handOver("bert")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := handing(forever, false, schema.Handoff{MaxRetries: 1, TimeoutMS: 5000}, map[string]map[int]*model.Response{
					"tester": {1: handOver("subagent_anna")}, "anna": work,
				})
				w.absent = "bert"
				began := time.Now()
				m := w.go1(t)
				r := m.Result(1, 0)
				if r.Error == nil || r.Error.Type != schema.Timeout || !strings.Contains(r.Output, "after 5s") || r.Spent.Attempts != 2 {
					t.Errorf("result %+v", r)
				}
				if took := time.Since(began); took < 10*time.Second || took > time.Minute {
					t.Errorf("two attempts took %v", took)
				}
			})
		})
	}
}

// TestStoppedHandoffIsNotRetried: who stops an attempt stops the call (seed-notes, weak point 14).
func TestStoppedHandoffIsNotRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := handing(forever, false, schema.Handoff{MaxRetries: 3}, map[string]map[int]*model.Response{"tester": {1: handOver("subagent_anna")}})
		w.think = func(ctx context.Context, req *model.Request) (*model.Response, error, bool) {
			if req.Agent == "anna" {
				w.stop(schema.ChildRun("r", 1, 0, 1))
				<-ctx.Done()
				return nil, ctx.Err(), true
			}
			return nil, nil, false
		}
		r := w.go1(t).Result(1, 0)
		if r.Error == nil || r.Error.Type != schema.Cancelled || len(w.bus.Keys(schema.ChildRun("r", 1, 0, 2))) > 0 {
			t.Errorf("result %+v", r)
		}
	})
}
