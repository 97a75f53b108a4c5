package agentfile

import (
	"reflect"

	"github.com/jetcrew/jetcrew/schema"
)

// govern reads the tools and all that decides about their calls.
func (r *reader) govern(fields map[string]field, spec *schema.AgentSpec) {
	g := &schema.Governance{
		Filters:     r.filters(fields[fieldFilters]),
		Policy:      r.policy(fields[fieldPolicy]),
		Environment: r.filled(fields[fieldEnvironment]),
		Authority:   r.authority(fields[fieldAuthority]),
		AbortOn:     r.texts(fields[fieldAbortOn], "names"),
		Subagents:   r.subagents(fields[fieldSubagents], spec.ID),
		Handoff:     r.handoff(fields[fieldHandoff], shapeHandoff(fieldHandoff)),
	}
	r.tools(fields[fieldTools], spec, g)
	if reflect.ValueOf(*g).IsZero() {
		return
	}
	spec.Governance = g
	r.checkNames(spec)
	r.checkHandoffs(g)
	r.checkSettings(g)
	named := map[string]int{}
	r.checkFilters(g, named)
	r.checkRules(g, named)
	r.checkPatterns(spec)
	r.checkSpend(spec)
}
