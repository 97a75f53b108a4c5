package schema

import "slices"

// Governance is what an agent's file says about permission: who is asked, what is refused, what is fixed on the
// server's side. It travels in a run's open fact, so that whoever carries the run on decides alike.
type Governance struct {
	Tools       []ToolSetting `msgpack:"tools,omitempty" json:"tools,omitempty"`             // of single tools; the first that matches a call holds
	Filters     []FilterRule  `msgpack:"filters,omitempty" json:"filters,omitempty"`         // the first that matches a call decides
	Policy      *Policy       `msgpack:"policy,omitempty" json:"policy,omitempty"`           // absent: whatever the filters let through may run
	Environment string        `msgpack:"environment,omitempty" json:"environment,omitempty"` // such as production; policy rules name it
	Authority   []string      `msgpack:"authority,omitempty" json:"authority,omitempty"`     // scopes that bound every run of the agent, see Scopes; empty: the principal's alone
	AbortOn     []string      `msgpack:"abort_on,omitempty" json:"abort_on,omitempty"`       // tools whose failure ends the run: names, globs, queue/name
	Subagents   []Subagent    `msgpack:"subagents,omitempty" json:"subagents,omitempty"`     // agents that it may hand tasks to
	Handoff     *Handoff      `msgpack:"handoff,omitempty" json:"handoff,omitempty"`         // policy of subagents that have none of their own
	Above       []Above       `msgpack:"above,omitempty" json:"above,omitempty"`             // policies of the agents whose task it is, the uppermost first; no file sets it, see AgentSpec.Under
}

// When a person is asked about a call of a tool, beside what the policy's rules say; see ToolSetting.Approval.
const (
	ApproveAlways = "always" // at every autonomy
	ApproveAsk    = "ask"    // unless the autonomy is full
	ApproveSafe   = "safe"   // unless the tool only reads, or the autonomy is full
	ApproveNever  = "never"  // not for its risk; a rule that asks still holds
)

// ToolSetting sets what concerns one tool of an agent, or those that a glob names.
type ToolSetting struct {
	Ref       string   `msgpack:"ref" json:"ref"`                                   // name, glob or queue/name
	Approval  string   `msgpack:"approval,omitempty" json:"approval,omitempty"`     // always, ask, safe or never; empty: the policy's autonomy decides
	Once      bool     `msgpack:"once,omitempty" json:"once,omitempty"`             // run-once, whatever the tool declares
	TimeoutMS int64    `msgpack:"timeout_ms,omitempty" json:"timeout_ms,omitempty"` // bound on running, if it is less than the tool's own
	Bind      JSONText `msgpack:"bind,omitempty" json:"bind,omitempty"`             // an object: values that the tool gets beside the model's arguments; texts may hold ${principal.id}, ${principal.tenant}, ${run} and ${agent}
}

// Setting returns the setting that holds for a tool as its queue knows it, nil when there is none.
func (g *Governance) Setting(queue, tool string) *ToolSetting {
	if g == nil {
		return nil
	}
	for i := range g.Tools {
		if MatchTool(g.Tools[i].Ref, queue, tool) {
			return &g.Tools[i]
		}
	}
	return nil
}

// Above is the policy of an agent that hands a task over. It holds for the run of the task too, beside the one of that
// run's own agent, and the most restrictive decides: what an agent may not do, or not without asking, it cannot have done
// by another.
type Above struct {
	Agent       string        `msgpack:"agent" json:"agent"`                                 // its id, which stands before the names of its rules
	Environment string        `msgpack:"environment,omitempty" json:"environment,omitempty"` // its own, for its rules
	Policy      *Policy       `msgpack:"policy,omitempty" json:"policy,omitempty"`           // absent: it has none
	Tools       []ToolSetting `msgpack:"tools,omitempty" json:"tools,omitempty"`             // its settings, as far as they say when a person is asked
}

// Under returns the agent as it is for a task that parent hands to it; nil is nobody. Neither is changed.
func (a *AgentSpec) Under(parent *AgentSpec) *AgentSpec {
	if parent == nil || parent.Governance == nil {
		return a
	}
	above := parent.Governance.Above
	if own := parent.Governance.above(parent.ID); own.Policy != nil || len(own.Tools) > 0 {
		above = append(slices.Clone(above), own)
	}
	if len(above) == 0 {
		return a
	}
	under, governance := *a, Governance{}
	if a.Governance != nil {
		governance = *a.Governance
	}
	governance.Above = above
	under.Governance = &governance
	return &under
}

// above is what the governance of an agent says to those below it.
func (g *Governance) above(agent string) Above {
	own := Above{Agent: agent, Environment: g.Environment, Policy: g.Policy}
	for i := range g.Tools {
		// Settings without an approval stay: the first one that names a tool holds, so they keep later ones from holding.
		own.Tools = append(own.Tools, ToolSetting{Ref: g.Tools[i].Ref, Approval: g.Tools[i].Approval})
	}
	if !slices.ContainsFunc(own.Tools, func(t ToolSetting) bool { return t.Approval != "" }) {
		own.Tools = nil
	}
	return own
}

// FilterRule decides about calls before any policy does.
type FilterRule struct {
	Name   string   `msgpack:"name,omitempty" json:"name,omitempty"` // for the record; default: its place, such as filters[0]
	Tools  []string `msgpack:"tools" json:"tools"`                   // names, globs, queue/name; empty: all
	When   string   `msgpack:"when,omitempty" json:"when,omitempty"` // condition in CEL over args, tool, queue, effect, principal; empty: always
	Action Action   `msgpack:"action" json:"action"`                 // allow, deny, guide or redirect
	Text   string   `msgpack:"text,omitempty" json:"text,omitempty"` // reason, feedback or suggestion
}

// Policy says which calls may run, may not, or wait for a person. All rules that match count; the most restrictive wins.
type Policy struct {
	Presets   []string     `msgpack:"presets,omitempty" json:"presets,omitempty"`       // ready-made lists of rules, by name
	Rules     []PolicyRule `msgpack:"rules,omitempty" json:"rules,omitempty"`           // of one's own
	Default   Action       `msgpack:"default,omitempty" json:"default,omitempty"`       // where no rule matches: allow (the default), ask or deny
	Autonomy  string       `msgpack:"autonomy,omitempty" json:"autonomy,omitempty"`     // from which risk on a person is asked: full-auto (critical; the default), supervised (high), cautious (medium), manual (all)
	ExpiresMS int64        `msgpack:"expires_ms,omitempty" json:"expires_ms,omitempty"` // how long a question waits for its verdict; default 24 h
}

// The settings of Policy.Autonomy.
const (
	AutonomyFull       = "full-auto"
	AutonomySupervised = "supervised"
	AutonomyCautious   = "cautious"
	AutonomyManual     = "manual"
)

// The risks of a call, from the least to the most. A tool's effect gives its risk: read is low, write and network are
// medium, anything else is high; a rule may set another.
const (
	RiskLow      = "low"
	RiskMedium   = "medium"
	RiskHigh     = "high"
	RiskCritical = "critical"
)

// PolicyRule is one rule of a policy. A dimension that is left out matches every call.
type PolicyRule struct {
	Name         string   `msgpack:"name,omitempty" json:"name,omitempty"`                 // for the record; default: its place, such as policy.rules[0]
	Tools        []string `msgpack:"tools,omitempty" json:"tools,omitempty"`               // names, globs, queue/name
	Effects      []string `msgpack:"effects,omitempty" json:"effects,omitempty"`           // see EffectRead
	Environments []string `msgpack:"environments,omitempty" json:"environments,omitempty"` // the agent's environment
	When         string   `msgpack:"when,omitempty" json:"when,omitempty"`                 // condition in CEL, as in FilterRule
	Action       Action   `msgpack:"action,omitempty" json:"action,omitempty"`             // allow, deny or ask; empty with Risk: none of its own
	Risk         string   `msgpack:"risk,omitempty" json:"risk,omitempty"`                 // of the calls that match, instead of that of the effect
	Text         string   `msgpack:"text,omitempty" json:"text,omitempty"`                 // why
}

// How a sub-agent's runs remember.
const (
	SessionNew   = "new"   // each task is a run of its own
	SessionReuse = "reuse" // each goes on with the conversation of the one before in the same parent run, one after the other
)

// Subagent is an agent that another one sees as a tool.
type Subagent struct {
	Agent       string   `msgpack:"agent" json:"agent"`                                 // its id on the queue agents
	Name        string   `msgpack:"name" json:"name"`                                   // of the tool; SubagentName(Agent) where the file gives none
	Description string   `msgpack:"description,omitempty" json:"description,omitempty"` // for the model; default: that of AgentTool
	Session     string   `msgpack:"session,omitempty" json:"session,omitempty"`         // new (the default) or reuse
	Handoff     *Handoff `msgpack:"handoff,omitempty" json:"handoff,omitempty"`         // its own policy instead of the agent's
}

// What becomes of a handoff that is refused or fails.
const (
	HandoffFail     = "fail"
	HandoffFallback = "fallback" // the model reads a text that is marked as such
)

// Handoff is the policy of handing tasks to sub-agents.
type Handoff struct {
	Allowed    []string `msgpack:"allowed,omitempty" json:"allowed,omitempty"`         // names of sub-agent tools; empty: all
	Denied     []string `msgpack:"denied,omitempty" json:"denied,omitempty"`           // names of sub-agent tools; wins over Allowed
	MaxDepth   int      `msgpack:"max_depth,omitempty" json:"max_depth,omitempty"`     // handoffs above the new run, itself included; default 1, less than 0: only MaxDepth holds
	MaxRetries int      `msgpack:"max_retries,omitempty" json:"max_retries,omitempty"` // further attempts after one that failed, each a run of its own; default 0
	TimeoutMS  int64    `msgpack:"timeout_ms,omitempty" json:"timeout_ms,omitempty"`   // of one attempt; 0: none of its own
	OnDenied   string   `msgpack:"on_denied,omitempty" json:"on_denied,omitempty"`     // fail (the default) or fallback
	OnError    string   `msgpack:"on_error,omitempty" json:"on_error,omitempty"`       // fail (the default) or fallback
	Fallback   string   `msgpack:"fallback,omitempty" json:"fallback,omitempty"`       // the text of a fallback
}
