package rules

import "github.com/jetcrew/jetcrew/schema"

// setting is a compiled setting of tools.
type setting struct {
	ref      string
	approval string
	rule     string   // that asks because of approval
	binding  *binding // nil: nothing is bound
}

func (c *compiler) settings(all []schema.ToolSetting) []setting {
	settings := make([]setting, len(all))
	for i := range all {
		settings[i] = c.setting(place("tools", i), &all[i])
	}
	return settings
}

func (c *compiler) setting(at string, t *schema.ToolSetting) setting {
	s := setting{ref: t.Ref, approval: t.Approval, rule: at + ".approval"}
	c.taken[s.rule] = s.rule
	c.pattern(at+".ref", t.Ref)
	c.oneOf(at+".approval", "approval", t.Approval, schema.ApproveAlways, schema.ApproveAsk, schema.ApproveSafe, schema.ApproveNever)
	if t.TimeoutMS < 0 {
		c.problems.add(at+".timeout_ms", CodeRange, "a call cannot run for %d ms; want more than 0, or 0 for the tool's own bound", t.TimeoutMS)
	}
	if t.Bind != "" {
		s.binding = c.binding(at+".bind", t.Bind)
	}
	return s
}
