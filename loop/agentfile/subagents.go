package agentfile

import (
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/jetcrew/jetcrew/schema"
)

const (
	maxDepth   = schema.MaxDepth
	maxRetries = 100
)

// subagents reads the agents that this one, self, may hand tasks to.
func (r *reader) subagents(f field, self string) []schema.Subagent {
	var list []schema.Subagent
	for _, n := range r.list(f, "sub-agents") {
		fields := r.object(n, shapeSubagent())
		s := schema.Subagent{
			Agent:       r.agentOf(n, fields[fieldAgent], self),
			Name:        r.filled(fields[fieldName]),
			Description: r.filled(fields[fieldDescription]),
			Session:     r.choice(fields[fieldSession], CodeSubagentSession, sessions),
			Handoff:     r.handoff(fields[fieldPolicy], shapeHandoff(fieldPolicy)),
		}
		r.checkSubagentName(fields[fieldName], s.Name)
		if s.Name == "" && s.Agent != "" {
			s.Name = schema.SubagentName(s.Agent)
		}
		list = append(list, s)
	}
	return list
}

func (r *reader) agentOf(n ast.Node, f field, self string) string {
	agent := r.text(f)
	_, isText := f.value.(*ast.StringNode)
	switch _, isMap := n.(ast.MapNode); {
	case isMap && f.null():
		r.fail(n, CodeSubagentRequired, "sub-agent: agent is missing; it is the id of an agent")
	case isText && (len(agent) > maxID || !validID.MatchString(agent)):
		r.fail(f.value, CodeIDInvalid, "agent %q: want 1 to %d of A-Z, a-z, 0-9, '.', '_' and '-'", short(agent), maxID)
	case isText && agent == self:
		r.fail(f.value, CodeSubagentSelf, "agent %q is this agent itself", short(agent))
	}
	return agent
}

func (r *reader) checkSubagentName(f field, name string) {
	switch {
	case name == "":
	case !validTool.MatchString(name):
		r.fail(f.value, CodeSubagentInvalid, "name %q: want 1 to 64 of A-Z, a-z, 0-9, '_' and '-'", short(name))
	case strings.HasPrefix(name, "team_"):
		r.fail(f.value, CodeToolReserved, "name %q: names that begin with team_ are reserved", short(name))
	}
}

// handoff reads the policy of handing tasks to sub-agents; nil: the file says nothing of it.
func (r *reader) handoff(f field, s *shape) *schema.Handoff {
	if f.null() {
		return nil
	}
	fields := r.object(f.value, s)
	h := &schema.Handoff{
		Allowed:    r.some(fields[fieldAllowed], "names"),
		Denied:     r.texts(fields[fieldDenied], "names"),
		MaxDepth:   r.maxDepth(fields[fieldMaxDepth]),
		MaxRetries: r.maxRetries(fields[fieldMaxRetries]),
		TimeoutMS:  r.bound(fields[fieldTimeout], "timeoutMillis"),
		OnDenied:   r.choice(fields[fieldOnDenied], CodeHandoffOn, handoffs),
		OnError:    r.choice(fields[fieldOnError], CodeHandoffOn, handoffs),
		Fallback:   r.filled(fields[fieldFallback]),
	}
	r.checkFallback(fields, h)
	return h
}

// maxDepth is a bound from 1 on, or -1 for none but that of all runs. 0 would be read as the default, 1.
func (r *reader) maxDepth(f field) int {
	n, ok := r.number(f)
	if ok && (n < -1 || n == 0 || n > maxDepth) {
		r.fail(f.value, CodeHandoffDepth, "%s: want 1 to %d, or -1 for no bound below that, got %d", f.name, maxDepth, n)
	}
	return int(n)
}

func (r *reader) maxRetries(f field) int {
	n, ok := r.number(f)
	if ok && (n < 0 || n > maxRetries) {
		r.fail(f.value, CodeNumberRange, "%s: want 0 to %d, got %d", f.name, maxRetries, n)
	}
	return int(n)
}

// checkFallback wants the text of a fallback exactly where something leads to one.
func (r *reader) checkFallback(fields map[string]field, h *schema.Handoff) {
	for _, f := range []field{fields[fieldOnDenied], fields[fieldOnError]} {
		if !f.null() && f.value.GetToken().Value == schema.HandoffFallback && fields[fieldFallback].null() {
			r.fail(f.value, CodeHandoffText, "%s: the text of the field %s is missing", f.name, fieldFallback)
		}
	}
	if h.Fallback != "" && h.OnDenied != schema.HandoffFallback && h.OnError != schema.HandoffFallback {
		r.warn(fields[fieldFallback].value, CodeHandoffTextUnused, "fallback: nobody reads it unless onDenied or onError is %s", schema.HandoffFallback)
	}
}
