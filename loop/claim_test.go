package loop

import (
	"math"
	"testing"

	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/schema"
)

// TestNoClaimUndoesTheAuthority: a budget that is no amount, which a starter may write into its call, takes nothing away from
// what the authority of the run, or its parent, allows to spend.
func TestNoClaimUndoesTheAuthority(t *testing.T) {
	t.Parallel()
	for _, claim := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), 9} {
		r := &Run{state: memory.New(), agent: &Agent{cfg: Config{Principal: schema.Principal{Scopes: []string{"tool:*", "spend:0.5"}}}}}
		r.state.Put(schema.OpenKey(), &schema.Open{Budget: schema.Budget{Cost: claim}})
		if got := r.limits().MaxCost; got != 0.5 {
			t.Errorf("claim %v, authority 0.5: the run may cost %v", claim, got)
		}
		c := &child{parent: &schema.Open{Agent: &schema.AgentSpec{Limits: schema.Limits{MaxCost: 0.5}}}}
		o := &schema.Open{Budget: schema.Budget{Cost: claim}}
		if c.bound(o); o.Budget.Cost != 0.5 {
			t.Errorf("claim %v, parent 0.5: the child may cost %v", claim, o.Budget.Cost)
		}
	}
}
