package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sourcegraph/conc/panics"

	"github.com/jetcrew/jetcrew/schema"
)

// ruleHandoff is the rule of the decisions that the handoff policy takes.
const ruleHandoff = "handoff"

// maxReason bounds the reason in front of a fallback, in bytes, so that there is room for that.
const maxReason = 1 << 10

// InputFilter changes what a sub-agent is told, before its call is decided about. An error, or a panic, refuses the call.
// It may be called by several runs at once.
type InputFilter func(ctx context.Context, task, known string) (newTask, newKnown string, err error)

// withSubagents offers the agent's sub-agents beside other tools. Two tools of one name are an error.
func (x *exchange) withSubagents(tools []schema.Tool) ([]schema.Tool, error) {
	g := x.agent.cfg.Agent.Governance
	if g == nil || len(g.Subagents) == 0 {
		return tools, nil
	}
	all := tools[:len(tools):len(tools)]
	for i := range g.Subagents {
		t := schema.SubagentTool(g.Subagents[i])
		if other := named(t.Name, tools); other != nil {
			return nil, fmt.Errorf("the tool %q is both the sub-agent %s and a tool of queue %s", t.Name, t.Target, other.Queue)
		}
		all = append(all, t)
	}
	return all, nil
}

// checkSubagents returns what is wrong with the sub-agents of an agent, "" when nothing is.
func checkSubagents(spec *schema.AgentSpec) (why string) {
	if spec.Governance == nil {
		return ""
	}
	seen := map[string]string{}
	for i := range spec.Governance.Subagents {
		s := &spec.Governance.Subagents[i]
		name, h := s.ToolName(), spec.Governance.HandoffOf(s)
		other, taken := seen[name]
		seen[name] = s.Agent
		switch {
		case s.Agent == "":
			return fmt.Sprintf("sub-agent %d names no agent", i)
		case taken:
			return fmt.Sprintf("the sub-agents %s and %s have the same tool name %q: give one of them another", other, s.Agent, name)
		case s.Agent == spec.ID:
			return fmt.Sprintf("sub-agent %s is the agent itself", s.Agent)
		case s.Session != "" && s.Session != schema.SessionNew && s.Session != schema.SessionReuse:
			return fmt.Sprintf("sub-agent %s: session %q: want %s or %s", s.Agent, s.Session, schema.SessionNew, schema.SessionReuse)
		case h.MaxRetries < 0 || h.TimeoutMS < 0:
			return fmt.Sprintf("sub-agent %s: retries and timeout must not be negative", s.Agent)
		}
	}
	return ""
}

// isHandoff tells whether a call is one of a sub-agent's tool.
func isHandoff(c *schema.TurnCall) bool { return c.Source == schema.SourceSubagent }

// refuses asks the handoff policy, and the input filter, about a call of a sub-agent. It tells whether the call is
// decided by that.
func (x *exchange) refuses(c *schema.TurnCall, tool *schema.Tool) bool {
	if !isHandoff(c) {
		return false
	}
	g := x.agent.cfg.Agent.Governance
	s := g.Subagent(c.Tool)
	if s == nil {
		c.Decision = schema.Decision{Action: schema.ActionDeny, Rule: ruleHandoff, Text: "the agent has no such sub-agent"}
		return true
	}
	h := g.HandoffOf(s)
	why := h.Refuses(c.Tool, len(x.open.Lineage)+1)
	if why == "" {
		why = x.filterInput(c)
	}
	if why != "" {
		c.Decision = schema.Decision{Action: schema.ActionDeny, Rule: ruleHandoff, Text: h.Denial(why)}
		return true
	}
	if err := x.check(c, tool); err != nil {
		c.Decision = invalid(err)
		return true
	}
	return false
}

// filterInput puts what the input filter made of the arguments into c. It returns why the call is refused.
func (x *exchange) filterInput(c *schema.TurnCall) (why string) {
	filter := x.agent.cfg.InputFilters[c.Tool]
	var a schema.AgentArgs
	if filter == nil || json.Unmarshal([]byte(c.Args), &a) != nil {
		return ""
	}
	var err error
	var catch panics.Catcher
	catch.Try(func() { a.Task, a.Context, err = filter(x.stop.calls, a.Task, a.Context) })
	if p := catch.Recovered(); p != nil {
		x.agent.cfg.Logger.Error("an input filter panicked", "run", x.id, "tool", c.Tool, "panic", p.Value, "stack", string(p.Stack))
		return "the input filter failed"
	}
	if err != nil {
		return "the input filter refused the task: " + strings.TrimSpace(err.Error())
	}
	args, err := json.Marshal(a)
	if err != nil {
		return "the input filter failed"
	}
	if canonical, _, bad := schema.Canonical(string(args)); bad == nil && canonical != c.Args {
		if c.Raw == "" {
			c.Raw = string(c.Args)
		}
		c.Args, c.Notes = canonical, append(c.Notes, "arguments changed by the input filter")
	}
	return ""
}

// fallback is what memory shows of a handoff that failed, where its policy wants a fallback and the result has none: then
// somebody else than the sub-agent's orchestrator has settled the call.
func (x *exchange) fallback(c *schema.TurnCall, r *schema.Result) (text string, ok bool) {
	if r.OK || !isHandoff(c) || r.Error == nil || r.Error.Type == schema.Denied || schema.HasFallback(r.Output) {
		return "", false
	}
	g := x.agent.cfg.Agent.Governance
	s := g.Subagent(c.Tool)
	if s == nil {
		return "", false
	}
	h := g.HandoffOf(s)
	if h.OnError != schema.HandoffFallback || h.Fallback == "" {
		return "", false
	}
	e := &schema.Error{Type: r.Error.Type, Message: schema.WithFallback(schema.Cut(r.Error.Message, maxReason), h.Fallback)}
	return schema.ToolError(e, c.Tool, c.Label), true
}
