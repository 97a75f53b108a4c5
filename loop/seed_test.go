package loop_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/schema"
)

// TestSeedToolCalls is what the sections 5.2, 5.4 and 5.5 of the seed tools-and-registry say of the way of a call: which
// reference it gets, what becomes of a failure, and what the model reads under which reference. Section 5.3 is
// executor.TestSeedStructure.
func TestSeedToolCalls(t *testing.T) {
	t.Parallel()
	tests := []struct {
		section string
		calls   []schema.RawCall
		labels  []string
		texts   []string // their beginnings
	}{
		{
			"5.2 a missing callId is tool_step_<step>_<index>", raw("ok", "ok"),
			[]string{"tool_step_1_0", "tool_step_1_1"},
			[]string{"fine", "fine"},
		},
		{
			"5.2 a callId that is there stays",
			[]schema.RawCall{{ID: "call_a", Name: "ok"}, {ID: "  ", Name: "ok"}, {ID: " call_b ", Name: "ok"}},
			[]string{"call_a", "tool_step_1_1", "call_b"},
			[]string{"fine", "fine", "fine"},
		},
		{
			"5.2 references are stable: two calls never share one",
			[]schema.RawCall{{ID: "a", Name: "ok"}, {ID: "a", Name: "fail"}},
			[]string{"a", "a_1"},
			[]string{"fine", `TOOL_ERROR: {"errorType":"ToolFailed","error":"exit status 1","tool":"fail","callId":"a_1"}`},
		},
		{
			"5.4 what is no executable call does not reach the executor",
			[]schema.RawCall{{ID: "a", Name: "ok", Args: "[1]"}, {ID: "b", Name: "ok"}},
			[]string{"a", "b"},
			[]string{`TOOL_ERROR: {"errorType":"InvalidArguments"`, "fine"},
		},
		{
			"5.4 an exception of a tool does not bring down the agent",
			[]schema.RawCall{{ID: "a", Name: "fail"}, {ID: "b", Name: "panics"}, {ID: "c", Name: "ok"}},
			[]string{"a", "b", "c"},
			[]string{`TOOL_ERROR: {"errorType":"ToolFailed","error":"exit status 1","tool":"fail","callId":"a"}`, `TOOL_ERROR: {"errorType":"Panic"`, "fine"},
		},
		{
			"5.5 results and wrapped errors re-enter memory alike",
			[]schema.RawCall{{ID: "a", Name: "ok"}, {ID: "b", Name: "mute"}, {ID: "c", Name: "nothing"}},
			[]string{"a", "b", "c"},
			[]string{"fine", `TOOL_ERROR: {"errorType":"ToolFailed"`, `TOOL_ERROR: {"errorType":"UnknownTool"`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.section, func(t *testing.T) {
			t.Parallel()
			r := newRig(looptest.Calls(tt.calls...), looptest.Text("done"))
			if answer, _ := r.run(t); answer.Reason != schema.ReasonDone {
				t.Errorf("answer %+v", answer)
			}
			var labels []string
			var outputs []schema.Message
			for _, m := range r.model.Requests()[1].Messages { // the next turn reads them
				for _, c := range m.Calls {
					labels = append(labels, c.Label)
				}
				if m.Role == schema.RoleTool {
					outputs = append(outputs, m)
				}
			}
			if diff := cmp.Diff(tt.labels, labels); diff != "" || len(outputs) != len(tt.texts) {
				t.Fatalf("%d results; labels %s", len(outputs), diff)
			}
			for i, m := range outputs {
				if m.Label != labels[i] || !strings.HasPrefix(m.Text, tt.texts[i]) || m.Error != strings.HasPrefix(m.Text, "TOOL_ERROR") {
					t.Errorf("result %d: %+v, want %s", i, m, tt.texts[i])
				}
				if strings.Contains(m.Text, "goroutine") || strings.Contains(m.Text, ".go") {
					t.Errorf("result %d carries a stack trace: %s", i, m.Text)
				}
			}
		})
	}
}

// TestSeedParallelToolCalls is what the sections 8 and 8.1 of the same seed say of calls at once: only if wanted, at most
// the cap, each within its time, and their results in the order of the calls.
func TestSeedParallelToolCalls(t *testing.T) {
	t.Parallel()
	six := []schema.RawCall{waitFor("6s"), waitFor("5s"), waitFor("4s"), waitFor("3s"), waitFor("2s"), waitFor("1s")}
	inOrder := []string{"6s", "5s", "4s", "3s", "2s", "1s"}
	slow := []schema.RawCall{waitFor("1s"), {Name: "hang"}, waitFor("2s")}
	timedOut := []string{"1s", `TOOL_ERROR: {"errorType":"Timeout"`, "2s"}
	tests := []struct {
		section  string
		parallel schema.Parallel
		calls    []schema.RawCall
		most     int
		texts    []string // their beginnings
	}{
		{"8 one after the other unless wanted", schema.Parallel{Max: 4}, six, 1, inOrder},
		{"8 one valid call is no batch", schema.Parallel{Calls: true}, []schema.RawCall{{Name: "wait", Args: "[]"}, waitFor("1s")}, 1, []string{"TOOL_ERROR", "1s"}},
		{"8.1 the cap bounds what runs at once", schema.Parallel{Calls: true, Max: 4}, six, 4, inOrder},
		{"8.1 no more than the batch", schema.Parallel{Calls: true, Max: 40}, six, 6, inOrder},
		{"8.1 no cap: all at once", schema.Parallel{Calls: true}, six, 6, inOrder},
		{"8.1 less than 0 is no cap", schema.Parallel{Calls: true, Max: -1}, six, 6, inOrder},
		{"8.1 a call over its time fails alone", schema.Parallel{Calls: true, TimeoutMS: 3000}, slow, 3, timedOut},
		{"8.1 a call over its time fails alone, one after the other", schema.Parallel{TimeoutMS: 3000}, slow, 1, timedOut},
		{"8.1 a time of 0 or less is none", schema.Parallel{Calls: true, TimeoutMS: -1}, []schema.RawCall{waitFor("4m"), waitFor("1s")}, 2, []string{"4m0s", "1s"}},
	}
	for _, tt := range tests {
		t.Run(tt.section, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(looptest.Calls(tt.calls...), looptest.Text("done"))
				r.cfg.Agent.Parallel = tt.parallel
				answer, run := r.run(t)
				if answer.Reason != schema.ReasonDone {
					t.Errorf("answer %+v", answer)
				}
				if most := r.bus.MostUnderWay(); most != tt.most {
					t.Errorf("%d calls ran at once, want %d", most, tt.most)
				}
				got := results(run)
				if len(got) != len(tt.texts) {
					t.Fatalf("results %+v", got)
				}
				for i, want := range tt.texts {
					if !strings.HasPrefix(got[i].Text, want) {
						t.Errorf("result %d: %q, want %q", i, got[i].Text, want)
					}
					if failed := strings.HasPrefix(want, "TOOL_ERROR"); got[i].Error != failed {
						t.Errorf("result %d: %+v", i, got[i])
					}
				}
			})
		})
	}
}
