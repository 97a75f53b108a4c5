package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

const defaultExpiry = 24 * time.Hour // of a question, where the policy sets none

// about says which calls a rule means.
func about(tools, effects, environments []string, when string) string {
	parts := []string{"all calls"}
	if len(tools) > 0 {
		parts[0] = strings.Join(tools, ", ")
	}
	if len(effects) > 0 {
		parts = append(parts, "with the effect "+strings.Join(effects, " or "))
	}
	if len(environments) > 0 {
		parts = append(parts, "in "+strings.Join(environments, " or "))
	}
	if when != "" {
		parts = append(parts, "when "+word(when))
	}
	return strings.Join(parts, " ")
}

// called is a rule's name, or its place.
func called(name, place string, i int) string { return cmp.Or(name, fmt.Sprintf("%s[%d]", place, i)) }

// because is a text behind a colon, if there is one.
func because(text string) string {
	if text == "" {
		return ""
	}
	return ": " + word(text)
}

func filterLines(filters []schema.FilterRule) []string {
	var lines []string
	for i, f := range filters {
		lines = append(lines, fmt.Sprintf("%s: %s %s%s", called(f.Name, "filters", i), f.Action, about(f.Tools, nil, nil, f.When), because(f.Text)))
	}
	return lines
}

func authorityLines(g *schema.Governance) []string {
	lines := []string{"the scopes of whoever starts the run"}
	if len(g.Authority) > 0 {
		lines = append(lines, "and those of the file: "+strings.Join(g.Authority, ", "))
	}
	return lines
}

func policyLines(p *schema.Policy) []string {
	var lines []string
	for i, r := range p.Rules {
		lines = append(lines, ruleLine(called(r.Name, "policy.rules", i), &r))
	}
	for _, name := range p.Presets {
		rules := presetRules(name)
		if rules == nil {
			lines = append(lines, "preset:"+name)
		}
		for _, r := range rules {
			lines = append(lines, ruleLine(r.Name, &r))
		}
	}
	return append(lines, "policy.default: "+string(cmp.Or(p.Default, schema.ActionAllow))+" where no rule allows, denies or asks")
}

func ruleLine(name string, r *schema.PolicyRule) string {
	does := string(r.Action)
	switch {
	case r.Risk != "" && does == "":
		does = "risk " + r.Risk + " for"
	case r.Risk != "":
		does += " (risk " + r.Risk + ")"
	}
	return fmt.Sprintf("%s: %s %s%s", name, does, about(r.Tools, r.Effects, r.Environments, r.When), because(r.Text))
}

func approvalLines(g *schema.Governance, p *schema.Policy) []string {
	autonomy := cmp.Or(p.Autonomy, schema.AutonomyFull)
	within := time.Duration(p.ExpiresMS) * time.Millisecond
	lines := []string{
		fmt.Sprintf("autonomy %s: a person is asked from the risk %s on", autonomy, asksFrom(autonomy)),
		fmt.Sprintf("who: the terminal of run or chat, or orchestrator approvals from anywhere; without an answer within %v the call is denied", cmp.Or(within, defaultExpiry)),
	}
	for _, t := range g.Tools {
		if t.Approval != "" {
			lines = append(lines, fmt.Sprintf("%s: %s", t.Ref, t.Approval))
		}
	}
	return lines
}

// asksFrom is the lowest risk about which a person is asked.
func asksFrom(autonomy string) string {
	switch autonomy {
	case schema.AutonomyManual:
		return schema.RiskLow
	case schema.AutonomyCautious:
		return schema.RiskMedium
	case schema.AutonomySupervised:
		return schema.RiskHigh
	}
	return schema.RiskCritical
}

func bindLines(g *schema.Governance) []string {
	var lines []string
	for _, t := range g.Tools {
		if keys := boundKeys(t.Bind); len(keys) > 0 {
			lines = append(lines, fmt.Sprintf("%s: gets %s; arguments with these names are refused", t.Ref, strings.Join(keys, ", ")))
		}
	}
	return lines
}

// boundKeys are the names of bound values. The values themselves are nobody's business here.
func boundKeys(bind schema.JSONText) []string {
	var values map[string]json.RawMessage
	_ = json.Unmarshal([]byte(bind), &values) // the reader wrote it
	return slices.Sorted(maps.Keys(values))
}

func limitLines(spec *schema.AgentSpec, g *schema.Governance) []string {
	l := spec.Limits
	lines := []string{fmt.Sprintf("an exchange: %s, %s, %s", bound(int64(l.MaxSteps), "steps"), lasting(l.WallClockMS), bound(l.MaxTokens, "tokens"))}
	if l.MaxCost > 0 {
		lines = append(lines, fmt.Sprintf("the whole run, with all runs below it: up to %v US dollars", l.MaxCost))
	}
	at := "one after another"
	if spec.Parallel.Calls {
		at = "all at the same time"
		if spec.Parallel.Max > 0 {
			at = fmt.Sprintf("up to %d at the same time", spec.Parallel.Max)
		}
	}
	lines = append(lines, "the calls of a turn: "+at+"; each "+lasting(spec.Parallel.TimeoutMS))
	for _, t := range g.Tools {
		if t.Once || t.TimeoutMS > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s", t.Ref, strings.Join(settingWords(&t), ", ")))
		}
	}
	if len(g.AbortOn) > 0 {
		lines = append(lines, "the run ends when one of these fails: "+strings.Join(g.AbortOn, ", "))
	}
	return lines
}

func settingWords(t *schema.ToolSetting) []string {
	var words []string
	if t.Once {
		words = append(words, "runs once at most")
	}
	if t.TimeoutMS > 0 {
		words = append(words, lasting(t.TimeoutMS))
	}
	return words
}

func bound(n int64, what string) string {
	if n == 0 {
		return "any number of " + what
	}
	return fmt.Sprintf("%d %s", n, what)
}

func lasting(ms int64) string {
	if ms <= 0 {
		return "as long as it takes"
	}
	return "up to " + (time.Duration(ms) * time.Millisecond).String()
}

func handoffLines(g *schema.Governance) []string {
	var lines []string
	for _, s := range g.Subagents {
		h := cmp.Or(s.Handoff, g.Handoff, &schema.Handoff{})
		depth := fmt.Sprint(cmp.Or(h.MaxDepth, 1))
		if h.MaxDepth < 0 {
			depth = fmt.Sprint(schema.MaxDepth)
		}
		words := []string{"depth up to " + depth, plural(h.MaxRetries+1, "attempt"), "each " + lasting(h.TimeoutMS), "session " + cmp.Or(s.Session, schema.SessionNew)}
		if len(h.Allowed) > 0 && !slices.Contains(h.Allowed, s.Name) || slices.Contains(h.Denied, s.Name) {
			words = append(words, "never called: its policy denies it")
		}
		words = append(words, "denied: "+cmp.Or(h.OnDenied, schema.HandoffFail), "failed: "+cmp.Or(h.OnError, schema.HandoffFail))
		lines = append(lines, fmt.Sprintf("%s: agent %s; %s", s.Name, s.Agent, strings.Join(words, ", ")))
	}
	return lines
}
