package rules

import (
	"cmp"
	"context"

	"github.com/jetcrew/jetcrew/schema"
)

// steps are what of the rules is asked.
type steps uint8

const (
	filtering  steps = 1 << iota
	permitting       // by the policy, then by those of the agents above
	reserving        // a key that is bound must not stand in the arguments
	valuing          // the bound values are set

	all = filtering | permitting | reserving | valuing
)

// Step is a part of Rules as a guard of its own.
type Step struct {
	rules *Rules
	steps steps
}

// Steps returns the filters, the policy and what binds values as guards of their own, for others to stand between them. One
// after another, they decide as the rules do. Where one between them changes arguments, note that all are asked once more about
// a call that a person approved, and see it as it would run: the filters then, too.
func (r *Rules) Steps() (filters, policy, binds *Step) {
	return &Step{r, filtering}, &Step{r, permitting}, &Step{r, reserving | valuing}
}

// Decide says what is to become of a call: the filters, then the policy, then those of the agents above; where it may run, perhaps after
// a person was asked, the values of its tool's setting are bound. The context holds the schema.Scene of the run.
func (r *Rules) Decide(ctx context.Context, c *schema.TurnCall) schema.Decision {
	return r.decide(ctx, c, all)
}

// Authorize is Decide without binding, for a call that a person has approved or edited: filters see edited arguments too, and
// a call that they let through once they let through again. Decision.Rule of an ActionAsk names every rule that asks, so
// that one which did not ask before stands out. It changes nothing.
func (r *Rules) Authorize(ctx context.Context, c *schema.TurnCall) schema.Decision {
	return r.decide(ctx, c, all&^valuing)
}

// Settle leaves results as they are.
func (r *Rules) Settle(context.Context, *schema.TurnCall, *schema.Result) (view string, changed bool) {
	return "", false
}

// Decide is Rules.Decide of this step.
func (s *Step) Decide(ctx context.Context, c *schema.TurnCall) schema.Decision {
	return s.rules.decide(ctx, c, s.steps)
}

// Authorize is Rules.Authorize of this step.
func (s *Step) Authorize(ctx context.Context, c *schema.TurnCall) schema.Decision {
	return s.rules.decide(ctx, c, s.steps&^valuing)
}

// Settle leaves results as they are.
func (s *Step) Settle(context.Context, *schema.TurnCall, *schema.Result) (view string, changed bool) {
	return "", false
}

func (r *Rules) decide(ctx context.Context, c *schema.TurnCall, does steps) (d schema.Decision) {
	scene := schema.SceneOf(ctx)
	s := newSubject(c, &scene, cmp.Or(r.environment, scene.Environment))
	if does&filtering != 0 {
		if d := r.filter(&s); d.Action != "" {
			return d
		}
	}
	set := r.setting(&s)
	if does&permitting != 0 {
		d = r.permit(c, &s, set, &scene)
	}
	if d.Action == schema.ActionDeny || set == nil || set.binding == nil || does&reserving == 0 {
		return d
	}
	if bad := set.binding.check(c); bad.Action != "" {
		return bad
	}
	if does&valuing != 0 {
		if bad := set.binding.bind(c, &scene); bad.Action != "" {
			return bad
		}
	}
	return d
}

// permit is the strictest word of the policy and of those above.
func (r *Rules) permit(c *schema.TurnCall, s *subject, set *setting, scene *schema.Scene) schema.Decision {
	d := r.policy.decide(s, set)
	for i := range r.above {
		if d.Ends() {
			break
		}
		d = d.And(r.above[i].decide(c, scene))
	}
	return d
}
