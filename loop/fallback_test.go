package loop_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

var guess = schema.Handoff{OnError: schema.HandoffFallback, Fallback: "guess", TimeoutMS: 5000}

const guessed = ". Fallback instead of the sub-agent's answer: guess"

// TestFallbackWhoeverFails: what the model reads of a handoff that failed is the marked fallback, whoever has written the
// failure: the sub-agent's orchestrator, one that did not start it, or the owner. The recorded result stays as it is.
func TestFallbackWhoeverFails(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(*town)
		policy  schema.Handoff
		want    string // of the model's line, in it
		typ     schema.ErrorType
		status  string
	}{
		"the sub-agent":                {func(w *town) { w.flaky(1) }, guess, "the model is broken" + guessed, schema.ToolFailed, loop.HandoffFallback},
		"the owner at its deadline":    {func(w *town) { w.absent = "anna" }, guess, "not started" + guessed, schema.Timeout, loop.HandoffFallback},
		"who found that it is unknown": {func(w *town) { w.alien = "anna" }, guess, `nobody serves the agent \"anna\"` + guessed, schema.NoWorker, loop.HandoffFallback},
		"the owner, without fallback":  {func(w *town) { w.alien = "anna" }, schema.Handoff{}, `nobody serves the agent \"anna\"","tool"`, schema.NoWorker, loop.HandoffFailed},
		"only for refusals":            {func(w *town) { w.alien = "anna" }, schema.Handoff{OnDenied: schema.HandoffFallback, Fallback: "guess"}, `"anna\"","tool"`, schema.NoWorker, loop.HandoffFailed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := handing(forever, false, tt.policy, map[string]map[int]*model.Response{"tester": {1: handOver("subagent_anna", "the_writer")}})
				tt.prepare(w)
				var ends []loop.Event
				w.setUp = func(c *loop.HostConfig) {
					c.Events = func(e loop.Event) {
						if e.Type == loop.EventHandoffEnd && e.Handoff.Subagent == "anna" {
							ends = append(ends, e)
						}
					}
				}
				m := w.go1(t)
				text, _ := m.Text(1, 0)
				if !strings.HasPrefix(text, "TOOL_ERROR: ") || !strings.Contains(text, tt.want) {
					t.Errorf("the model reads %s, want %s", text, tt.want)
				}
				if r := m.Result(1, 0); r.OK || r.Error.Type != tt.typ {
					t.Errorf("result %+v", r)
				}
				if strings.Count(text, guessed) > 1 || toolError(m, 0) != text {
					t.Errorf("the memory has %q", toolError(m, 0))
				}
				if len(ends) == 0 || ends[len(ends)-1].Handoff.Status != tt.status || !strings.Contains(ends[len(ends)-1].Text, tt.want) {
					t.Errorf("events %+v", ends)
				}
			})
		})
	}
}

// toolError returns the i-th text that the memory shows of a tool.
func toolError(m *memory.Run, i int) string {
	for _, msg := range m.Messages() {
		if msg.Role == schema.RoleTool {
			if i == 0 {
				return msg.Text
			}
			i--
		}
	}
	return ""
}

// TestFallbackSurvivesKills kills whoever works after each step: the fallback is in the memory, once.
func TestFallbackSurvivesKills(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := func(left int, after bool) (*town, []schema.Message) {
			w := handing(left, after, guess, map[string]map[int]*model.Response{"tester": {1: handOver("subagent_anna", "the_writer")}})
			w.alien = "anna"
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
			}
		}
		if kills < 20 || !strings.Contains(want[2].Text+want[3].Text, guessed) {
			t.Errorf("%d kills, memory %+v", kills, want)
		}
	})
}
