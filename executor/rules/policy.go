package rules

import (
	"cmp"
	"slices"

	"github.com/jetcrew/jetcrew/schema"
)

// The rules that decide where none of the policy's own does.
const (
	ruleDefault  = "policy.default"
	ruleAutonomy = "policy.autonomy"
)

// policy is a compiled policy.
type policy struct {
	rules    []rule
	fallback schema.Decision // where no rule with an action matches; the zero Decision allows
	full     bool            // the autonomy is full
	from     risk            // on which a person is asked
}

// rule is a compiled rule of a policy.
type rule struct {
	matcher
	decision schema.Decision // without an action: the rule only sets a risk
	risk     risk            // 0: none
}

// weighing is what the rules that match one call say.
type weighing struct {
	decided bool // a rule with an action matched
	allow   schema.Decision
	ask     schema.Decision // Rule and Text of all that ask
	risk    risk            // the highest that a rule set; 0: none did
	raised  risk            // the highest of rules that may match: it only ever raises
}

// decide weighs all rules that match: one that denies wins over those that ask, and these over those that allow.
func (p *policy) decide(s *subject, set *setting) schema.Decision {
	var w weighing
	for i := range p.rules {
		if deny := p.rules[i].weigh(s, &w); deny.Action != "" {
			return deny
		}
	}
	if !w.decided {
		if p.fallback.Action == schema.ActionDeny {
			return p.fallback
		}
		w.consider(p.fallback)
	}
	p.askPerson(s, set, &w)
	if w.ask.Action != "" {
		return w.ask
	}
	return w.allow
}

// weigh adds what the rule says about the call, or returns its denial. Where the condition cannot be evaluated the rule counts
// for what makes the outcome stricter, and for nothing else.
func (r *rule) weigh(s *subject, w *weighing) schema.Decision {
	hit, err := r.match(s)
	switch {
	case err != nil:
		w.raised = max(w.raised, r.risk)
		if !r.stops {
			return schema.Decision{}
		}
	case !hit:
		return schema.Decision{}
	default:
		w.risk = max(w.risk, r.risk)
	}
	if r.decision.Action == "" {
		return schema.Decision{}
	}
	d := r.decision
	if err != nil {
		d.Text += failed(err)
	}
	if d.Action == schema.ActionDeny {
		return d
	}
	w.decided = w.decided || err == nil // a rule that may not match leaves the default in force
	w.consider(d)
	return schema.Decision{}
}

// consider adds a decision to ask or to allow.
func (w *weighing) consider(d schema.Decision) {
	switch {
	case d.Action == schema.ActionAllow && w.allow.Action == "":
		w.allow = d
	case d.Action == schema.ActionAsk && w.ask.Action == "":
		w.ask = d
	case d.Action == schema.ActionAsk:
		w.ask.Rule += ", " + d.Rule
		w.ask.Text += "; " + d.Text
	}
}

func (c *compiler) policy(s *schema.Policy) policy {
	c.taken[ruleDefault], c.taken[ruleAutonomy] = ruleDefault, ruleAutonomy
	if s == nil {
		s = &schema.Policy{}
	}
	const at = "policy"
	p := policy{fallback: c.fallback(at+".default", s.Default)}
	for i := range s.Rules {
		p.rules = append(p.rules, c.rule(place(at+".rules", i), &s.Rules[i]))
	}
	p.rules = append(p.rules, c.presets(at+".presets", s.Presets)...)
	p.full, p.from = c.autonomy(at+".autonomy", s.Autonomy)
	if s.ExpiresMS < 0 {
		c.problems.add(at+".expires_ms", CodeRange, "a question cannot wait for %d ms; want more than 0, or 0 for the default", s.ExpiresMS)
	}
	return p
}

// fallback compiles the policy's default.
func (c *compiler) fallback(path string, a schema.Action) schema.Decision {
	d := schema.Decision{Action: a, Rule: ruleDefault}
	switch a {
	case "", schema.ActionAllow:
		return schema.Decision{}
	case schema.ActionDeny:
		d.Text = "no rule of the policy allows this call"
	case schema.ActionAsk:
		d.Text = "no rule of the policy allows this call without asking"
	default:
		c.oneOf(path, "default of a policy", string(a), "allow", "ask", "deny")
	}
	return d
}

func (c *compiler) rule(at string, s *schema.PolicyRule) rule {
	r := rule{decision: schema.Decision{Action: s.Action, Rule: c.name(s.Name, at), Text: s.Text}, risk: riskOf(s.Risk)}
	r.stops = s.Action == schema.ActionDeny || s.Action == schema.ActionAsk
	r.tools = c.patterns(at+".tools", s.Tools)
	r.effects = slices.Clone(s.Effects)
	for i, e := range s.Effects {
		if e == "" {
			c.problems.add(place(at+".effects", i), CodeMissing, "the effect is empty")
		}
		c.oneOf(place(at+".effects", i), "effect", e, schema.EffectRead, schema.EffectWrite, schema.EffectNetwork, schema.EffectDestructive)
	}
	r.environments = slices.Clone(s.Environments)
	for i, e := range s.Environments {
		if e == "" {
			c.problems.add(place(at+".environments", i), CodeMissing, "the environment is empty")
		}
	}
	r.when = c.condition(at+".when", s.When)
	c.oneOf(at+".risk", "risk", s.Risk, schema.RiskLow, schema.RiskMedium, schema.RiskHigh, schema.RiskCritical)
	switch s.Action {
	case schema.ActionAllow:
	case schema.ActionDeny:
		r.decision.Text = cmp.Or(s.Text, "a rule of the policy denies this call")
	case schema.ActionAsk:
		r.decision.Text = cmp.Or(s.Text, "a rule of the policy asks for approval")
	case "":
		if s.Risk == "" {
			c.problems.add(at+".action", CodeMissing, "a rule needs an action (allow, deny or ask), a risk, or both")
		}
	case schema.ActionGuide, schema.ActionRedirect:
		c.problems.add(at+".action", CodeUnknown, "a policy cannot %s; that is for filters", s.Action)
	default:
		c.oneOf(at+".action", "action of a policy", string(s.Action), "allow", "deny", "ask")
	}
	return r
}
