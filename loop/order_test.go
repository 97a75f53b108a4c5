package loop_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/schema"
)

func TestResultsInCallOrder(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 1, 3, 100} {
		t.Run(fmt.Sprintf("at most %d", limit), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				list, want := make([]schema.RawCall, 40), make([]string, 40)
				for i := range list {
					d := time.Duration(1+rand.IntN(5000)) * time.Millisecond
					list[i], want[i] = waitFor(d.String()), d.String()
				}
				list[7], want[7] = schema.RawCall{Name: "ok", Args: "[1]"}, ""
				r := newRig(looptest.Calls(list...), looptest.Text("done"))
				r.cfg.Agent.Parallel = schema.Parallel{Calls: true, Max: limit}
				_, run := r.run(t)
				got := texts(results(run))
				got[7] = ""
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				if most := r.bus.MostUnderWay(); limit > 0 && most > limit || limit == 0 && most != 39 {
					t.Errorf("%d calls ran at once", most)
				}
			})
		})
	}
}

func TestSettledOnArrivalResultInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(looptest.Calls(waitFor("3s"), waitFor("1s"), waitFor("2s")), looptest.Text("done"))
		r.cfg.Agent.Parallel.Calls = true
		r.run(t)
		want := `run_start
step_start
model_request
model_response
tool_call 0
tool_call 1
tool_call 2
tool_settled 1
tool_settled 2
tool_settled 0
tool_result 0
tool_result 1
tool_result 2
step_end
step_start
model_request
model_response
final_output
step_end
run_end
`
		if diff := cmp.Diff(want, r.events.Lines()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestSequentialUnlessWantedAndMoreThanOne(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		parallel bool
		calls    []schema.RawCall
		took     time.Duration
	}{
		{"not wanted", false, []schema.RawCall{waitFor("2s"), waitFor("1s")}, 3 * time.Second},
		{"wanted", true, []schema.RawCall{waitFor("2s"), waitFor("1s")}, 2 * time.Second},
		{"one valid", true, []schema.RawCall{waitFor("2s"), {Name: "nobody"}}, 2 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(looptest.Calls(tt.calls...), looptest.Text("done"))
				r.cfg.Agent.Parallel.Calls = tt.parallel
				began := time.Now()
				r.run(t)
				if took := time.Since(began); took != tt.took {
					t.Errorf("took %s, want %s", took, tt.took)
				}
			})
		})
	}
}

// TestSequentialInvalidInItsPlace: an invalid call's result is written when its turn has come, not before (nor after)
// its valid siblings.
func TestSequentialInvalidInItsPlace(t *testing.T) {
	t.Parallel()
	r := newRig(looptest.Calls(schema.RawCall{Name: "ok"}, schema.RawCall{Name: "ok", Args: "7"}, schema.RawCall{Name: "echo"}), looptest.Text("done"))
	_, run := r.run(t)
	want := []string{
		"open", "ctl.1", "say.1", "turn.1", "begin.1.0.test", "result.1.0.test", "result.1.1.none", "begin.1.2.test", "result.1.2.test",
		"turn.2", "answer.1", "close",
	}
	if diff := cmp.Diff(want, r.bus.Keys(run.ID())); diff != "" {
		t.Error(diff)
	}
}

func TestCallTimeoutLeavesSiblings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(looptest.Calls(waitFor("900ms"), schema.RawCall{Name: "hang"}, waitFor("500ms")), looptest.Text("done"))
		r.cfg.Agent.Parallel = schema.Parallel{Calls: true, TimeoutMS: 1000}
		began := time.Now()
		_, run := r.run(t)
		if diff := cmp.Diff([]schema.ErrorType{"", "Timeout", ""}, errorTypes(run, 1)); diff != "" {
			t.Error(diff)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestProgressEndsWithItsCall(t *testing.T) {
	t.Parallel()
	var late context.Context
	r := newRig(calls("talk"), looptest.Text("done"))
	r.tool("talk", func(ctx context.Context, _ *schema.Call) (string, error) {
		schema.Progress(ctx, "half way")
		late = ctx
		return "fine", nil
	})
	run := r.start(t)
	if _, err := run.Say(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	schema.Progress(late, "too late")
	if err := run.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.checkEvents(t)
	if got := r.events.Of(loop.EventToolProgress); len(got) != 1 || got[0].Text != "half way" {
		t.Errorf("progress %+v", got)
	}
}
