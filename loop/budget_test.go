package loop_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// TestChildrenShareWhatIsLeft: the calls of agents in one turn get equal parts of what their run may still spend; those
// for whom nothing is left are refused before anything is published.
func TestChildrenShareWhatIsLeft(t *testing.T) {
	t.Parallel()
	three := []string{"subagent_anna", "the_writer", "subagent_anna"}
	tests := map[string]struct {
		limits schema.Limits
		scopes []string
		want   []schema.Budget // of the calls; none: refused
		why    string
	}{
		"no limits":            {limits: schema.Limits{}, want: []schema.Budget{{}, {}, {}}},
		"steps":                {limits: schema.Limits{MaxSteps: 9}, want: []schema.Budget{{Steps: 3}, {Steps: 3}, {Steps: 2}}},
		"steps for two":        {limits: schema.Limits{MaxSteps: 3}, want: []schema.Budget{{Steps: 1}, {Steps: 1}}, why: "no steps are left"},
		"steps for none":       {limits: schema.Limits{MaxSteps: 1}, why: "no steps are left"},
		"tokens":               {limits: schema.Limits{MaxTokens: 315}, want: []schema.Budget{{Tokens: 100}, {Tokens: 100}, {Tokens: 100}}},
		"tokens for none":      {limits: schema.Limits{MaxTokens: 15}, why: "no tokens are left"},
		"money":                {limits: schema.Limits{MaxCost: 18}, want: []schema.Budget{{Cost: 1}, {Cost: 1}, {Cost: 1}}},
		"money of a principal": {limits: schema.Limits{MaxCost: 18}, scopes: []string{"spend:16.5"}, want: []schema.Budget{{Cost: 0.5}, {Cost: 0.5}, {Cost: 0.5}}},
		"money for none":       {limits: schema.Limits{MaxCost: 15}, why: "no dollars are left"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := handing(forever, false, schema.Handoff{}, map[string]map[int]*model.Response{"tester": {1: handOver(three...)}})
				of := w.shape
				w.shape = func(spec *schema.AgentSpec) {
					if of(spec); spec.ID == "tester" {
						spec.Limits = tt.limits
						spec.Model.Price = schema.Price{Input: 1e6, Output: 1e6} // a dollar for a token
					}
				}
				m := starter("r", `{"task":"go"}`)
				m.Call.Principal.Scopes = tt.scopes
				w.post(m)
				w.live(t)
				r := w.memory(t, "r")
				for i, c := range r.Turn(1).Calls {
					var want, got schema.Budget
					if i < len(tt.want) {
						want = tt.want[i]
					} else if out := r.Result(1, i).Output; !strings.HasPrefix(out, "DENIED: "+tt.why) {
						t.Errorf("call %d: %s", i, out)
					}
					var open schema.Open
					if w.bus.Fact(schema.ChildRun("r", 1, i, 1), schema.OpenKey(), &open) != (i < len(tt.want)) {
						t.Errorf("call %d: open %+v", i, open)
					}
					got = open.Budget
					if diff := cmp.Diff(want, c.Budget) + cmp.Diff(want, got); diff != "" {
						t.Errorf("call %d: %s", i, diff)
					}
				}
			})
		})
	}
}

// TestChildEndsWithItsBudget: a child is bounded by what its parent had left, what it used is gone, and its parent ends
// when nothing is left.
func TestChildEndsWithItsBudget(t *testing.T) {
	t.Parallel()
	again := &model.Response{Calls: raw("count"), Finish: schema.FinishCalls, Usage: schema.Usage{Input: 10}}
	tests := map[string]struct {
		limits        schema.Limits
		anna          int // turns, the one after the limit included
		reason, ended schema.Reason
	}{
		"steps":    {schema.Limits{MaxSteps: 4}, 4, schema.ReasonMaxSteps, schema.ReasonMaxSteps},
		"tokens":   {schema.Limits{MaxTokens: 60}, 6, schema.ReasonTokens, schema.ReasonTokens},
		"dollars":  {schema.Limits{MaxCost: 60}, 6, schema.ReasonCost, schema.ReasonCost},
		"its own":  {schema.Limits{MaxSteps: 40}, 8, schema.ReasonMaxSteps, schema.ReasonDone},
		"no limit": {schema.Limits{}, 8, schema.ReasonMaxSteps, schema.ReasonDone},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := handing(forever, false, schema.Handoff{}, map[string]map[int]*model.Response{"tester": {1: handOver("subagent_anna")}, "anna": {}})
				for n := 1; n < 20; n++ {
					w.answers["anna"][n] = again
				}
				of := w.shape
				w.shape = func(spec *schema.AgentSpec) {
					of(spec)
					spec.Model.Price = schema.Price{Input: 1e6, Output: 1e6}
					if spec.Limits = tt.limits; spec.ID == "anna" {
						spec.Limits = schema.Limits{MaxSteps: 7}
					}
				}
				w.post(starter("r", `{"task":"go"}`))
				w.live(t)
				anna := w.memory(t, schema.ChildRun("r", 1, 0, 1))
				if a := anna.Answer(1); a.Reason != tt.reason || anna.Turns() != tt.anna {
					t.Errorf("anna ends as %+v", a)
				}
				r := w.memory(t, "r")
				if a := r.Answer(1); a.Reason != tt.ended || a.Usage.Total() != 15+int64(10*tt.anna) {
					t.Errorf("tester ends as %+v", a)
				}
				if got := r.Result(1, 0).Spent; got.Steps != tt.anna || got.Cost != float64(10*tt.anna) {
					t.Errorf("spent %+v", got)
				}
			})
		})
	}
}

// TestChildEndsWithItsParent: the time that a run has as a child bounds its own children.
func TestChildEndsWithItsParent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := handing(forever, false, schema.Handoff{TimeoutMS: 60_000}, map[string]map[int]*model.Response{
			"tester": {1: handOver("subagent_anna")}, "anna": {1: handOver("bert")},
		})
		w.go1(t)
		anna := w.memory(t, schema.ChildRun("r", 1, 0, 1))
		if c := anna.Turn(1).Calls[0]; c.WithinMS != 60_000 {
			t.Errorf("within %v", time.Duration(c.WithinMS)*time.Millisecond)
		}
	})
}
