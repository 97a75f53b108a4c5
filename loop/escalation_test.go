package loop

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jetcrew/jetcrew/schema"
)

// TestNoBudgetIsGained: the parts of what a run has left are no more than that together, for any number of calls, and what is
// left of a part after any attempt is no more than the part.
func TestNoBudgetIsGained(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "calls")
		steps, tokens := rapid.Int64Range(-5, 50).Draw(t, "steps"), rapid.Int64Range(-5, 1000).Draw(t, "tokens")
		cost := rapid.Float64Range(-1, 10).Draw(t, "cost")
		all := remains{steps: &steps, tokens: &tokens, cost: &cost}
		bounded := rapid.SliceOfN(rapid.Bool(), 3, 3).Draw(t, "bounded")
		left := remains{}
		if bounded[0] {
			left.steps = all.steps
		}
		if bounded[1] {
			left.tokens = all.tokens
		}
		if bounded[2] {
			left.cost = all.cost
		}
		var sum schema.Budget
		for i := range n {
			b, why := left.share(i, n)
			if why != "" {
				continue
			}
			if bounded[0] != (b.Steps > 0) || bounded[1] != (b.Tokens > 0) || bounded[2] != (b.Cost > 0) {
				t.Fatalf("part %d of %d is %+v", i, n, b)
			}
			sum = schema.Budget{Steps: sum.Steps + b.Steps, Tokens: sum.Tokens + b.Tokens, Cost: sum.Cost + b.Cost}
			spent := schema.Spent{
				Steps: rapid.IntRange(0, 60).Draw(t, "taken"), Usage: schema.Usage{Input: rapid.Int64Range(0, 1200).Draw(t, "used")},
				Cost: rapid.Float64Range(0, 12).Draw(t, "paid"),
			}
			r, ok := rest(b, spent)
			if r.Steps > max(0, b.Steps-spent.Steps) || r.Tokens > max(0, b.Tokens-spent.Usage.Input) || r.Cost > max(0, b.Cost-spent.Cost) {
				t.Fatalf("%+v are left of %+v after %+v", r, b, spent)
			}
			if gone := bounded[0] && r.Steps == 0 || bounded[1] && r.Tokens == 0 || bounded[2] && r.Cost == 0; ok == gone { // 0 would be no bound
				t.Fatalf("%+v are left of %+v, go on: %t", r, b, ok)
			}
		}
		const rounding = 1e-9
		if bounded[0] && int64(sum.Steps) > max(0, steps) || bounded[1] && sum.Tokens > max(0, tokens) || bounded[2] && sum.Cost > max(0, cost)+rounding {
			t.Fatalf("%d parts of %+v, %+v, %+v are %+v together", n, steps, tokens, cost, sum)
		}
	})
}

// TestNoCallClaimsMore: whatever a call on the queue claims, the run that it starts may spend no more than its parent, in any
// dimension that bounds the parent, and has no longer time.
func TestNoCallClaimsMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.IntRange(-2, 3)
		draw := func(label string) schema.Budget {
			return schema.Budget{Steps: few.Draw(t, label), Tokens: int64(few.Draw(t, label)), Cost: float64(few.Draw(t, label))}
		}
		above, limits := draw("budget of the parent"), draw("limits of the parent")
		parent := &schema.Open{
			Agent:  &schema.AgentSpec{Limits: schema.Limits{MaxSteps: max(0, limits.Steps), MaxTokens: max(0, limits.Tokens), MaxCost: max(0, limits.Cost)}},
			Budget: schema.Budget{Steps: max(0, above.Steps), Tokens: max(0, above.Tokens), Cost: max(0, above.Cost)},
			AtMS:   1000, DeadlineMS: rapid.Int64Range(0, 3).Draw(t, "deadline of the parent") * 1000,
		}
		if ms := rapid.Int64Range(0, 2).Draw(t, "time of the attempt") * 500; ms > 0 {
			parent.Handoff = &schema.Handover{TimeoutMS: ms}
		}
		c := &child{parent: parent, call: &schema.Call{Run: "r", Turn: 1, Lineage: []string{}}}
		if ms := rapid.Int64Range(0, 5).Draw(t, "deadline of the call") * 1000; ms > 0 {
			c.run.Deadline = time.UnixMilli(ms)
		}
		o := c.open(&schema.Open{Agent: &schema.AgentSpec{}, Budget: draw("claim")})
		check := func(what string, got float64, bounds ...float64) {
			if got < 0 {
				t.Fatalf("%s: %v", what, got)
			}
			for _, b := range bounds {
				if b > 0 && (got == 0 || got > b) {
					t.Fatalf("%s: %v, its parent has %v", what, got, b)
				}
			}
		}
		b, l, p := o.Budget, parent.Agent.Limits, parent.Budget
		check("steps", float64(b.Steps), float64(p.Steps), float64(l.MaxSteps))
		check("tokens", float64(b.Tokens), float64(p.Tokens), float64(l.MaxTokens))
		check("dollars", b.Cost, p.Cost, l.MaxCost)
		check("deadline", float64(o.DeadlineMS), float64(parent.DeadlineMS))
		if end := attemptEnd(parent); !end.IsZero() {
			check("time of the attempt", float64(o.DeadlineMS), float64(end.UnixMilli()))
		}
	})
}
