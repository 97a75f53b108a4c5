package loop

import (
	"fmt"
	"math"

	"github.com/jetcrew/jetcrew/schema"
)

// limits are those of the agent, or less where the run may spend less: its share of what its parent had left, and what
// its principal's authority allows.
func (r *Run) limits() schema.Limits {
	l := r.agent.cfg.Agent.Limits
	if open := r.state.Open(); open != nil {
		l.MaxSteps = least(l.MaxSteps, open.Budget.Steps)
		l.MaxTokens = least(l.MaxTokens, open.Budget.Tokens)
		l.MaxCost = least(l.MaxCost, open.Budget.Cost)
	}
	if usd, ok := schema.SpendLimit(r.agent.cfg.Principal.Scopes); ok {
		l.MaxCost = least(l.MaxCost, max(usd, math.SmallestNonzeroFloat64)) // 0 would be no limit
	}
	return l
}

// least is the lower one of two limits, of which 0 is none. Neither is one below 0 or that is no number: a stranger's call may
// claim those.
func least[T int | int64 | float64](a, b T) T {
	if !(a > 0) || b > 0 && b < a {
		return b
	}
	return a
}

// spent is what the turns from first on have used.
func (r *Run) spent(first int) schema.Spent {
	return r.state.Spent(first, r.agent.cfg.Agent.Model.Price)
}

// share divides what the run may still spend among the agents that a turn calls, in their order, and refuses those for
// whom nothing is left. The shares are written with the turn, so that whoever goes on with it publishes the same ones.
func (x *exchange) share(t *schema.Turn) {
	var calls []*schema.TurnCall
	for i := range t.Calls {
		c := &t.Calls[i]
		if c.Queue == schema.QueueAgents && mayRun(c) {
			calls = append(calls, c)
		}
	}
	if len(calls) == 0 {
		return
	}
	left, why := x.left(t), ""
	for i, c := range calls {
		if c.Budget, why = left.share(i, len(calls)); why == "" {
			c.WithinMS, why = x.withinRun(c.WithinMS)
		}
		if why != "" {
			x.refuse(c, why)
		}
	}
}

// refuse denies a call of an agent, as its handoff policy wants it said.
func (x *exchange) refuse(c *schema.TurnCall, why string) {
	if s := x.agent.cfg.Agent.Governance.Subagent(c.Tool); isHandoff(c) && s != nil {
		h := x.agent.cfg.Agent.Governance.HandoffOf(s)
		why = h.Denial(why)
	}
	c.Budget, c.Decision = schema.Budget{}, schema.Decision{Action: schema.ActionDeny, Rule: ruleHandoff, Text: why}
}

// withinRun bounds a call by the deadline of the run itself.
func (x *exchange) withinRun(withinMS int64) (ms int64, why string) {
	end := x.over()
	if end.IsZero() {
		return withinMS, ""
	}
	left := end.UnixMilli() - nowMS()
	if left <= 0 {
		return 0, "no time is left for another agent"
	}
	return least(withinMS, left), ""
}

// remains is what a run may still spend: of each dimension how much, if it is bounded.
type remains struct {
	steps, tokens *int64
	cost          *float64
}

// left is what remains behind the model's answer of turn t, which no fact holds yet.
func (x *exchange) left(t *schema.Turn) (r remains) {
	if x.agent.cfg.NoLimits {
		return r
	}
	l, exchange, all := x.limits(), x.spent(x.first), x.spent(1)
	if l.MaxSteps > 0 {
		n := int64(l.MaxSteps - exchange.Steps - 1)
		r.steps = &n
	}
	if l.MaxTokens > 0 {
		n := l.MaxTokens - all.Usage.Total() - t.Usage.Total()
		r.tokens = &n
	}
	if l.MaxCost > 0 {
		usd := l.MaxCost - all.Cost - x.agent.cfg.Agent.Model.Price.Cost(t.Usage)
		r.cost = &usd
	}
	return r
}

// share is the i-th of n equal parts, the first ones one larger where they do not come out even.
func (r remains) share(i, n int) (b schema.Budget, why string) {
	part := func(left int64) int64 {
		left = max(left, 0)
		p := left / int64(n)
		if int64(i) < left%int64(n) {
			p++
		}
		return p
	}
	nothing := func(of string) (schema.Budget, string) {
		return schema.Budget{}, fmt.Sprintf("no %s are left for another agent: its run has reached its limit", of)
	}
	if r.steps != nil {
		if b.Steps = int(part(*r.steps)); b.Steps == 0 {
			return nothing("steps")
		}
	}
	if r.tokens != nil {
		if b.Tokens = part(*r.tokens); b.Tokens == 0 {
			return nothing("tokens")
		}
	}
	if r.cost != nil {
		if b.Cost = *r.cost / float64(n); b.Cost <= 0 {
			return nothing("dollars")
		}
	}
	return b, ""
}
