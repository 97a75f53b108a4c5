package rules

import (
	"strings"

	"github.com/jetcrew/jetcrew/schema"
)

// above is the compiled policy of an agent that handed the task over.
type above struct {
	standing
	agent       string
	environment string
}

// decide says what the agent's policy makes of a call of the run below it, with the agent's id before the names of rules:
// an approval counts for the rule that asked.
func (a *above) decide(c *schema.TurnCall, scene *schema.Scene) schema.Decision {
	s := newSubject(c, scene, a.environment)
	d := a.policy.decide(&s, a.setting(&s))
	if d.Rule != "" {
		d.Rule = a.agent + ": " + strings.ReplaceAll(d.Rule, ", ", ", "+a.agent+": ")
	}
	return d
}

// above compiles the policies of agents above. Each agent has its own names of rules.
func (c *compiler) above(all []schema.Above) []above {
	compiled := make([]above, len(all))
	for i := range all {
		inner := compiler{taken: map[string]string{}, cel: c.cel}
		a := &compiled[i]
		a.agent, a.environment = all[i].Agent, all[i].Environment
		a.settings, a.policy = inner.settings(all[i].Tools), inner.policy(all[i].Policy)
		for _, p := range inner.problems {
			p.Path = place("above", i) + "." + p.Path
			c.problems = append(c.problems, p)
		}
	}
	return compiled
}
