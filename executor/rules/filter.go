package rules

import "github.com/jetcrew/jetcrew/schema"

// filter is a compiled rule of the filters.
type filter struct {
	matcher
	decision schema.Decision
}

// filter returns the decision of the first rule that is about the call; none, or one that allows, gives the zero Decision. A
// condition that cannot be evaluated makes a rule that stops calls hold, and one that allows not.
func (r *Rules) filter(s *subject) schema.Decision {
	for i := range r.filters {
		f := &r.filters[i]
		hit, err := f.match(s)
		switch {
		case !f.stops && hit:
			return schema.Decision{}
		case !f.stops || !hit && err == nil:
			continue
		}
		d := f.decision
		if err != nil {
			d.Text += failed(err)
		}
		return d
	}
	return schema.Decision{}
}

func (c *compiler) filters(all []schema.FilterRule) []filter {
	filters := make([]filter, len(all))
	for i := range all {
		filters[i] = c.filter(place("filters", i), &all[i])
	}
	return filters
}

func (c *compiler) filter(at string, r *schema.FilterRule) filter {
	f := filter{decision: schema.Decision{Action: r.Action, Rule: c.name(r.Name, at), Text: r.Text}}
	f.stops = r.Action != schema.ActionAllow
	f.tools = c.patterns(at+".tools", r.Tools)
	f.when = c.condition(at+".when", r.When)
	switch r.Action {
	case schema.ActionAllow:
	case schema.ActionDeny:
		if r.Text == "" {
			f.decision.Text = "a filter of this agent stops this call"
		}
	case schema.ActionGuide, schema.ActionRedirect:
		if r.Text == "" {
			c.problems.add(at+".text", CodeMissing, "%s needs a text: what the model is to do instead", r.Action)
		}
	case "":
		c.problems.add(at+".action", CodeMissing, "a filter needs an action: allow, deny, guide or redirect")
	case schema.ActionAsk:
		c.problems.add(at+".action", CodeUnknown, "a filter cannot ask; asking is for the rules of the policy")
	default:
		c.oneOf(at+".action", "action of a filter", string(r.Action), "allow", "deny", "guide", "redirect")
	}
	return f
}
