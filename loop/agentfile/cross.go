package agentfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/jetcrew/jetcrew/schema"
)

// This file holds what several parts of a file say together. Places are named by their path below schema.Governance.

func (r *reader) failPath(path string, code Code, format string, args ...any) {
	r.problems = append(r.problems, r.atPath(path, code, format, args...))
}

func (r *reader) warnPath(path string, code Code, format string, args ...any) {
	r.warnings = append(r.warnings, r.atPath(path, code, format, args...))
}

// atPath places a message at a path, see find.
func (r *reader) atPath(path string, code Code, format string, args ...any) Problem {
	tok, found := r.find(path)
	p := r.at(tok, code, format, args...)
	p.Path = redact(found)
	return p
}

// lineOf is the line of a path.
func (r *reader) lineOf(path string) int {
	tok, _ := r.find(path)
	return tok.Position.Line
}

// checkNames refuses a sub-agent with the name of another one or of a tool.
func (r *reader) checkNames(spec *schema.AgentSpec) {
	taken := map[string]string{} // by name: who has it, and where
	for i, ref := range spec.Tools {
		if name := toolOf(ref); !isGlob(name) {
			taken[name] = fmt.Sprintf("the tool in line %d", start(r.toolsAt[i]).Position.Line)
		}
	}
	for i, s := range spec.Governance.Subagents {
		path := item(fieldSubagents, i)
		if s.Name == "" {
			continue
		}
		if who, ok := taken[s.Name]; ok {
			r.failPath(path, CodeSubagentDuplicate, "sub-agent: the name %q is already that of %s", short(s.Name), who)
			continue
		}
		taken[s.Name] = fmt.Sprintf("the sub-agent in line %d", r.lineOf(path))
	}
}

// toolOf is the name, or the glob of names, that a pattern holds.
func toolOf(ref string) string {
	if _, name, ok := strings.Cut(ref, "/"); ok {
		return name
	}
	return ref
}

func isGlob(s string) bool { return strings.ContainsAny(s, "*?") }

// checkHandoffs compares the policies of handing over with the sub-agents that there are.
func (r *reader) checkHandoffs(g *schema.Governance) {
	var names []string
	for _, s := range g.Subagents {
		names = append(names, s.Name)
	}
	if g.Handoff != nil && len(names) == 0 {
		r.warnPath(fieldHandoff, CodeHandoffUnused, "handoff: there are no subagents")
	} else {
		r.checkHandoff(fieldHandoff, g.Handoff, names)
	}
	for i, s := range g.Subagents {
		path := item(fieldSubagents, i)
		r.checkHandoff(path+"."+fieldPolicy, s.Handoff, names)
		h := cmp.Or(s.Handoff, g.Handoff)
		if h != nil && s.Name != "" && (contains(h.Denied, s.Name) || len(h.Allowed) > 0 && !contains(h.Allowed, s.Name)) {
			r.warnPath(path, CodeHandoffContradicts, "sub-agent %q: its policy does not let it be called", short(s.Name))
		}
	}
}

func (r *reader) checkHandoff(path string, h *schema.Handoff, names []string) {
	if h == nil {
		return
	}
	for field, list := range map[string][]string{"allowed": h.Allowed, "denied": h.Denied} {
		for i, name := range list {
			if name != "" && !contains(names, name) {
				r.failPath(item(path+"."+field, i), CodeSubagentUnknown, "there is no sub-agent %q%s", short(name), suggestAll(name, names))
			}
		}
	}
}

// checkSettings warns of settings of tools that never hold.
func (r *reader) checkSettings(g *schema.Governance) {
	full, left := autonomy(g) == schema.AutonomyFull, maxCompared
	for i, t := range g.Tools {
		if full && (t.Approval == schema.ApproveAsk || t.Approval == schema.ApproveSafe) {
			r.warnPath(item(fieldTools, i)+".approval", CodeApprovalNotAsked,
				"approval %s: nobody is asked at the autonomy %s%s; write %s, or set policy.autonomy", t.Approval, schema.AutonomyFull, byDefault(g), schema.ApproveAlways)
		}
		for k, earlier := range g.Tools[:i] {
			if left--; left < 0 {
				return
			}
			if earlier.Ref == t.Ref { // that it stands there twice is said
				break
			}
			if covers(earlier.Ref, t.Ref) {
				r.warnPath(item(fieldTools, i), CodeToolShadowed, "tool %q: its settings never hold, since those of %q in line %d come first",
					short(t.Ref), short(earlier.Ref), r.lineOf(item(fieldTools, k)))
				break
			}
		}
	}
}

// autonomy is the autonomy of an agent, with its default.
func autonomy(g *schema.Governance) string {
	if g.Policy == nil {
		return schema.AutonomyFull
	}
	return cmp.Or(g.Policy.Autonomy, schema.AutonomyFull)
}

func byDefault(g *schema.Governance) string {
	if g.Policy == nil || g.Policy.Autonomy == "" {
		return ", which is the default"
	}
	return ""
}

// checkFilters warns of filters that no call reaches. named are the names of rules so far, and their lines.
func (r *reader) checkFilters(g *schema.Governance, named map[string]int) {
	left := maxCompared
	for i, f := range g.Filters {
		path := item(fieldFilters, i)
		r.checkRuleName(named, path, f.Name)
		for k, earlier := range g.Filters[:i] {
			if left -= len(earlier.Tools) * len(f.Tools); left < 0 {
				return
			}
			if earlier.When == "" && earlier.Action != "" && coversAll(earlier.Tools, f.Tools) {
				r.warnPath(path, CodeFilterUnreachable, "filter: no call reaches it, since the one in line %d decides about all of them", r.lineOf(item(fieldFilters, k)))
				break
			}
		}
	}
}

// checkRules warns of rules that nothing comes of.
func (r *reader) checkRules(g *schema.Governance, named map[string]int) {
	if g.Policy == nil {
		return
	}
	for i, rule := range g.Policy.Rules {
		path := item(fieldPolicy+"."+fieldRules, i)
		r.checkRuleName(named, path, rule.Name)
		if len(rule.Environments) > 0 && g.Environment == "" {
			r.warnPath(path+"."+fieldEnvironments, CodeEnvironmentNotSet, "environments: the file sets no environment, so this rule matches only where the run gets one from elsewhere")
		}
		if rule.Action == "" && rule.Risk != "" && rule.Risk != schema.RiskCritical && autonomy(g) == schema.AutonomyFull {
			r.warnPath(path+"."+fieldRisk, CodeRiskNotAsked, "risk %s: nobody is asked for it at the autonomy %s%s", rule.Risk, schema.AutonomyFull, byDefault(g))
		}
	}
}

// checkRuleName refuses names that do not tell which rule decided: records and approvals go by them.
func (r *reader) checkRuleName(named map[string]int, path, name string) {
	if strings.ContainsFunc(name, func(c rune) bool { return c == ',' || unicode.IsControl(c) }) {
		r.failPath(path+"."+fieldName, CodeRuleNameInvalid, "the name %q holds a comma or a control character; commas stand between names", short(name))
	}
	if line, ok := named[name]; ok {
		r.failPath(path+"."+fieldName, CodeRuleName, "the name %q is that of the one in line %d, too", short(name), line)
	} else if name != "" {
		named[name] = r.lineOf(path)
	}
}

// maxCompared bounds how many pairs of patterns are compared for a warning.
const maxCompared = 100_000

// checkPatterns warns of patterns that name none of the agent's tools.
func (r *reader) checkPatterns(spec *schema.AgentSpec) {
	g := spec.Governance
	known := append([]string{"read_output"}, spec.Tools...)
	agents := map[string]string{} // by the name of the sub-agent
	for _, s := range g.Subagents {
		known = append(known, schema.QueueAgents+"/"+s.Agent, schema.QueueAgents+"/"+s.Name)
		agents[s.Name] = s.Agent
	}
	left := maxCompared
	check := func(path string, list []string) {
		for i, p := range list {
			if left -= len(known); left < 0 {
				return
			}
			if p != "" && !namesAny(p, known) {
				hint := ""
				switch id := agents[p]; {
				case id != "":
					hint = "; write " + schema.QueueAgents + "/" + id + ", as agents are named"
				case queueGlob(p):
					hint = "; a glob does not name queues: write the queue as it is, or only the name of the tool"
				}
				r.warnPath(item(path, i), CodeToolUnknown, "%q names none of the tools of this agent%s", short(p), hint)
			}
		}
	}
	check(fieldAbortOn, g.AbortOn)
	for i, f := range g.Filters {
		check(item(fieldFilters, i)+"."+fieldTools, f.Tools)
	}
	if g.Policy == nil {
		return
	}
	for i, rule := range g.Policy.Rules {
		check(item(fieldPolicy+"."+fieldRules, i)+"."+fieldTools, rule.Tools)
	}
}

// checkSpend refuses a bound on money that nothing counts against, and warns of one that counts only what other agents cost to which
// this one hands tasks.
func (r *reader) checkSpend(spec *schema.AgentSpec) {
	if spec.Model.Price != (schema.Price{}) {
		return
	}
	hands := len(spec.Governance.Subagents) > 0 || slices.ContainsFunc(spec.Tools, func(ref string) bool { return strings.HasPrefix(ref, schema.QueueAgents+"/") })
	for i, scope := range spec.Governance.Authority {
		switch {
		case !strings.HasPrefix(scope, schema.ScopeSpend+":") || isNoScope(scope): // what is wrong with it is said
		case !hands:
			r.failPath(item(fieldAuthority, i), CodeSpendPriceRequired, "%s: what the model costs is not known, so nothing would ever count; set price of model, in fields", short(scope))
		default:
			r.warnPath(item(fieldAuthority, i), CodeSpendNoPrice, "%s: what the model costs is not known, so only what the agents cost counts to which it hands tasks; set price of model, in fields", short(scope))
		}
	}
}
