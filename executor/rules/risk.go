package rules

import (
	"slices"

	"github.com/jetcrew/jetcrew/schema"
)

// risk is the place of a risk in its order, from 1; 0 is none.
type risk int

func risks() []string {
	return []string{schema.RiskLow, schema.RiskMedium, schema.RiskHigh, schema.RiskCritical}
}

func riskOf(name string) risk { return risk(slices.Index(risks(), name) + 1) }

func (r risk) String() string { return risks()[r-1] }

const (
	riskLow risk = iota + 1
	riskMedium
	riskHigh
	riskCritical
)

// ofEffect is the risk of a call for which no rule sets another.
func ofEffect(effect string) risk {
	switch effect {
	case schema.EffectRead:
		return riskLow
	case schema.EffectWrite, schema.EffectNetwork:
		return riskMedium
	}
	return riskHigh
}

// autonomy compiles the setting of that name: whether it is the full one, and from which risk on a person is asked.
func (c *compiler) autonomy(path, name string) (full bool, from risk) {
	switch name {
	case "", schema.AutonomyFull:
		return true, riskCritical
	case schema.AutonomySupervised:
		return false, riskHigh
	case schema.AutonomyCautious:
		return false, riskMedium
	case schema.AutonomyManual:
	default:
		c.oneOf(path, "autonomy", name, schema.AutonomyFull, schema.AutonomySupervised, schema.AutonomyCautious, schema.AutonomyManual)
	}
	return false, riskLow
}

// askPerson adds what is asked for a call's risk or by the setting of its tool. Of the settings only never takes a question
// away, and only that for the risk.
func (p *policy) askPerson(s *subject, set *setting, w *weighing) {
	approval := ""
	if set != nil {
		approval = set.approval
	}
	switch {
	case approval == schema.ApproveNever:
		return
	case approval == schema.ApproveAlways,
		approval == schema.ApproveAsk && !p.full,
		approval == schema.ApproveSafe && !p.full && s.effect != schema.EffectRead:
		w.consider(schema.Decision{Action: schema.ActionAsk, Rule: set.rule, Text: "this tool needs approval"})
	}
	r := w.risk
	if r == 0 {
		r = ofEffect(s.effect)
	}
	if r = max(r, w.raised); r >= p.from {
		w.consider(schema.Decision{Action: schema.ActionAsk, Rule: ruleAutonomy, Text: "the risk of this call is " + r.String()})
	}
}
