package loop

import (
	"context"

	"github.com/jetcrew/jetcrew/schema"
)

// Authorizer is a Guard that is asked once more about a call that a person has approved, perhaps with other arguments.
type Authorizer interface {
	// Authorize returns what Decide would now; an ask under the rule that was asked for is covered by the approval. It
	// changes nothing. A panic is a denial.
	Authorize(ctx context.Context, call *schema.TurnCall) schema.Decision
}

// authorise asks whoever has a say in permission about a call as it would run.
func (x *exchange) authorise(c *schema.TurnCall) schema.Decision {
	if d, ok := x.permitted(c); !ok {
		return d
	}
	d := schema.Decision{Action: schema.ActionAllow}
	for _, g := range x.agent.cfg.Guards {
		a, ok := g.(Authorizer)
		if !ok {
			continue
		}
		seen := *c
		got := x.protect(c, func() schema.Decision { return a.Authorize(x.scene(x.stop.calls), &seen) })
		if d = d.And(got); d.Ends() {
			return d
		}
	}
	return d
}
