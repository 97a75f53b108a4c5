package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/jetcrew/jetcrew/schema"
)

// ruleDefault is the policy's default, among the rules.
const ruleDefault = "policy.default"

// explainedTool is a tool, or a pattern of tools, and what becomes of its calls.
type explainedTool struct {
	Name    string   `json:"name"` // as the model sees it, or a pattern
	Queue   string   `json:"queue,omitempty"`
	Effect  string   `json:"effect,omitempty"`
	Runs    string   `json:"runs,omitempty"` // once or again
	Outcome string   `json:"outcome"`        // what becomes of a call that no condition is about: runs, asks, or how it is refused
	Asks    []reason `json:"asks,omitempty"` // why a person is asked
	Stops   []reason `json:"stops,omitempty"`
	Bound   []string `json:"bound,omitempty"` // names of values beside the arguments
	Aborts  bool     `json:"aborts,omitempty"`

	target string // what its queue calls it
	agent  string // of a sub-agent
	live   bool
}

// reason is a rule that has a say.
type reason struct {
	Does schema.Action `json:"does"`
	Rule string        `json:"rule"`
	If   []string      `json:"if,omitempty"` // all of these
	Text string        `json:"text,omitempty"`
}

func fileTool(pattern string) explainedTool {
	queue, name, ok := strings.Cut(pattern, "/")
	if !ok {
		queue, name = "", pattern
	}
	return explainedTool{Name: name, Queue: queue, target: name}
}

func subagentTool(s *schema.Subagent) explainedTool {
	return explainedTool{
		Name: s.Name, Queue: schema.QueueAgents, target: s.Agent, agent: s.Agent, live: true,
		Effect: effectOf(schema.AgentTool(schema.AgentSpec{ID: s.Agent}).Effect), Runs: "once",
	}
}

func liveTool(spec *schema.AgentSpec, t *schema.Tool) explainedTool {
	runs := "once"
	target := cmp.Or(t.Target, t.Name)
	if set := spec.Governance.Setting(t.Queue, target); t.Idempotent && (set == nil || !set.Once) {
		runs = "again"
	}
	return explainedTool{Name: t.Name, Queue: t.Queue, Effect: effectOf(t.Effect), Runs: runs, target: target, live: true}
}

// effectOf is an effect as it counts.
func effectOf(effect string) string {
	switch effect {
	case schema.EffectRead, schema.EffectWrite, schema.EffectNetwork:
		return effect
	}
	return schema.EffectDestructive
}

// weigh finds for each tool what becomes of its calls.
func (e *explanation) weigh(spec *schema.AgentSpec) {
	g := cmp.Or(spec.Governance, &schema.Governance{})
	for i := range e.Tools {
		t := &e.Tools[i]
		if set := g.Setting(t.Queue, t.target); set != nil {
			t.Bound = boundKeys(set.Bind)
		}
		t.Aborts = schema.MatchesTool(g.AbortOn, t.Queue, t.target)
		if !t.filter(g) {
			t.authorize(g)
		}
	}
}

// filter goes through the filters and tells whether they stop every call.
func (t *explainedTool) filter(g *schema.Governance) bool {
	for i, f := range g.Filters {
		stops := f.Action != schema.ActionAllow
		ifs, ok := t.meant(f.Tools, nil, nil, f.When, "", stops)
		switch {
		case !ok:
		case !stops && len(ifs) == 0:
			return false
		case stops:
			t.Stops = append(t.Stops, reason{f.Action, called(f.Name, "filters", i), ifs, f.Text})
			if len(ifs) == 0 {
				t.Outcome = string(f.Action)
				return true
			}
		}
	}
	return false
}

// authorize weighs the policy, the approval of the tool and its risk.
func (t *explainedTool) authorize(g *schema.Governance) {
	p := cmp.Or(g.Policy, &schema.Policy{})
	decided, set := false, ""
	from := asksFrom(cmp.Or(p.Autonomy, schema.AutonomyFull))
	for _, r := range rulesOf(p) {
		ifs, ok := t.meant(r.Tools, r.Effects, r.Environments, r.When, g.Environment, r.Action == schema.ActionDeny || r.Action == schema.ActionAsk)
		switch {
		case !ok:
			continue
		case r.Risk == "":
		case len(ifs) == 0 && atLeast(r.Risk, set):
			set = r.Risk
		case len(ifs) > 0 && atLeast(r.Risk, from):
			t.add(schema.ActionAsk, r.Name, ifs, "the risk is "+r.Risk)
		}
		decided = decided || len(ifs) == 0 && r.Action != ""
		t.add(r.Action, r.Name, ifs, r.Text)
	}
	if !decided {
		t.add(p.Default, ruleDefault, nil, "no rule of the policy decides")
	}
	t.approval(g, p, cmp.Or(set, t.risk()))
	t.conclude()
}

// rulesOf are all rules of a policy, each with a name.
func rulesOf(p *schema.Policy) []schema.PolicyRule {
	var rules []schema.PolicyRule
	for i, r := range p.Rules {
		r.Name = called(r.Name, "policy.rules", i)
		rules = append(rules, r)
	}
	for _, name := range p.Presets {
		rules = append(rules, presetRules(name)...)
	}
	return rules
}

func (t *explainedTool) add(does schema.Action, rule string, ifs []string, text string) {
	switch does {
	case schema.ActionDeny:
		t.Stops = append(t.Stops, reason{does, rule, ifs, text})
	case schema.ActionAsk:
		t.Asks = append(t.Asks, reason{does, rule, ifs, text})
	}
}

// approval adds what the setting of the tool and its risk ask for.
func (t *explainedTool) approval(g *schema.Governance, p *schema.Policy, risk string) {
	autonomy := cmp.Or(p.Autonomy, schema.AutonomyFull)
	full := autonomy == schema.AutonomyFull
	set := cmp.Or(g.Setting(t.Queue, t.target), &schema.ToolSetting{})
	rule := "approval " + set.Approval
	switch {
	case set.Approval == schema.ApproveNever:
		return
	case set.Approval == schema.ApproveAlways, set.Approval == schema.ApproveAsk && !full:
		t.add(schema.ActionAsk, rule, nil, "")
	case set.Approval == schema.ApproveSafe && !full && !t.live:
		t.add(schema.ActionAsk, rule, []string{"it does not only read"}, "")
	case set.Approval == schema.ApproveSafe && !full && t.Effect != schema.EffectRead:
		t.add(schema.ActionAsk, rule, nil, "")
	}
	switch from := asksFrom(autonomy); {
	case risk != "" && atLeast(risk, from):
		t.add(schema.ActionAsk, "autonomy "+autonomy, nil, "the risk is "+risk)
	case risk == "" && from != schema.RiskCritical:
		t.add(schema.ActionAsk, "autonomy "+autonomy, []string{"its risk, which its effect gives, is " + from + " or more"}, "")
	}
}

// risk is the risk that the tool's effect gives; "" where nobody knows the effect.
func (t *explainedTool) risk() string {
	switch t.Effect {
	case "":
		return ""
	case schema.EffectRead:
		return schema.RiskLow
	case schema.EffectWrite, schema.EffectNetwork:
		return schema.RiskMedium
	}
	return schema.RiskHigh
}

// conclude says what becomes of a call that no condition is about.
func (t *explainedTool) conclude() {
	always := func(r reason) bool { return len(r.If) == 0 }
	switch {
	case slices.ContainsFunc(t.Stops, always):
		t.Outcome = string(schema.ActionDeny)
	case slices.ContainsFunc(t.Asks, always):
		t.Outcome = string(schema.ActionAsk)
	default:
		t.Outcome = string(schema.ActionAllow)
	}
}

var risksInOrder = []string{schema.RiskLow, schema.RiskMedium, schema.RiskHigh, schema.RiskCritical}

func atLeast(risk, from string) bool {
	return slices.Index(risksInOrder, risk) >= slices.Index(risksInOrder, from)
}

// meant tells whether a rule is about the tool, and what must be so beside.
func (t *explainedTool) meant(tools, effects, environments []string, when, environment string, stops bool) (ifs []string, ok bool) {
	if len(tools) > 0 {
		sure, perhaps := t.named(tools, stops)
		switch {
		case len(perhaps) > 0 && !sure:
			ifs = append(ifs, "it is one of "+strings.Join(perhaps, ", "))
		case !sure:
			return nil, false
		}
	}
	switch {
	case len(effects) == 0:
	case !t.live:
		ifs = append(ifs, "its effect is "+strings.Join(effects, " or "))
	case !slices.Contains(effects, t.Effect):
		return nil, false
	}
	switch {
	case len(environments) == 0:
	case environment == "":
		ifs = append(ifs, "the environment is "+strings.Join(environments, " or "))
	case !slices.Contains(environments, environment):
		return nil, false
	}
	if when != "" {
		ifs = append(ifs, word(when))
	}
	return ifs, true
}

// named tells whether patterns name the tool, and which of them may name one of those that its own pattern names.
func (t *explainedTool) named(patterns []string, stops bool) (sure bool, perhaps []string) {
	for _, p := range patterns {
		queue, name, withQueue := strings.Cut(p, "/")
		switch {
		case schema.MatchTool(p, t.Queue, t.target), stops && schema.MatchTool(p, t.Queue, t.Name):
			return true, nil
		case t.live || withQueue && t.Queue != "" && queue != t.Queue:
		case withQueue && t.Queue == "" && schema.MatchTool(name, "", t.target),
			withQueue && schema.MatchTool(t.target, "", name),
			!withQueue && schema.MatchTool(t.target, "", p),
			strings.ContainsAny(p, "*?") && strings.ContainsAny(t.target, "*?"):
			perhaps = append(perhaps, p)
		}
	}
	return false, perhaps
}

// String is a rule in one line.
func (r reason) String() string {
	s := r.Rule + ": " + string(r.Does)
	if len(r.If) > 0 {
		s += " if " + strings.Join(r.If, ", and ")
	}
	return s + because(r.Text)
}
