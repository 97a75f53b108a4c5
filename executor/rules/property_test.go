package rules_test

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/jetcrew/jetcrew/schema"
)

// Conditions whose value is known; broken cannot be evaluated.
const (
	yes    = "true"
	no     = "false"
	broken = "args.missing == 1"
)

var drawRule = rapid.Custom(func(t *rapid.T) schema.PolicyRule {
	r := schema.PolicyRule{
		Tools:  rapid.SampledFrom([][]string{nil, {"a"}, {"b"}, {"q/*"}}).Draw(t, "tools"),
		When:   rapid.SampledFrom([]string{"", yes, no, broken}).Draw(t, "when"),
		Action: rapid.SampledFrom([]schema.Action{"", schema.ActionAllow, schema.ActionAsk, schema.ActionDeny}).Draw(t, "action"),
		Risk:   rapid.SampledFrom([]string{"", "", schema.RiskLow, schema.RiskMedium, schema.RiskHigh, schema.RiskCritical}).Draw(t, "risk"),
	}
	if r.Action == "" && r.Risk == "" {
		r.Action = schema.ActionAllow
	}
	return r
})

var drawGovernance = rapid.Custom(func(t *rapid.T) *schema.Governance {
	return &schema.Governance{
		Tools: []schema.ToolSetting{{Ref: "*", Approval: rapid.SampledFrom([]string{"", schema.ApproveAlways, schema.ApproveAsk, schema.ApproveSafe, schema.ApproveNever}).Draw(t, "approval")}},
		Policy: &schema.Policy{
			Rules:    rapid.SliceOfN(drawRule, 0, 4).Draw(t, "rules"),
			Default:  rapid.SampledFrom([]schema.Action{"", schema.ActionAsk, schema.ActionDeny}).Draw(t, "default"),
			Autonomy: rapid.SampledFrom([]string{"", schema.AutonomySupervised, schema.AutonomyCautious, schema.AutonomyManual}).Draw(t, "autonomy"),
		},
	}
})

var drawCall = rapid.Custom(func(t *rapid.T) schema.TurnCall {
	return schema.TurnCall{
		Tool: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tool"), Queue: "q", Args: "{}",
		Effect: rapid.SampledFrom([]string{schema.EffectRead, schema.EffectWrite, ""}).Draw(t, "effect"),
	}
})

// strictness puts outcomes in their order.
func strictness(a schema.Action) int {
	return slices.Index([]schema.Action{schema.ActionAllow, schema.ActionAsk, schema.ActionDeny}, a)
}

func outcomeOf(t *rapid.T, g *schema.Governance, rules []schema.PolicyRule, c schema.TurnCall) int {
	p := *g.Policy
	p.Rules = rules
	return strictness(outcome(compile(t, &schema.Governance{Tools: g.Tools, Policy: &p}).Decide(context.Background(), &c)))
}

// TestFailClosedIsTheWorstCase: the outcome with conditions that cannot be evaluated is the strictest of those that
// there would be if each were true or false.
func TestFailClosedIsTheWorstCase(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g, c := drawGovernance.Draw(t, "governance"), drawCall.Draw(t, "call")
		var open []int
		for i := range g.Policy.Rules {
			if g.Policy.Rules[i].When == broken {
				open = append(open, i)
			}
		}
		worst := 0
		for world := range 1 << len(open) {
			rules := slices.Clone(g.Policy.Rules)
			for bit, i := range open {
				rules[i].When = []string{no, yes}[world>>bit&1]
			}
			worst = max(worst, outcomeOf(t, g, rules, c))
		}
		if got := outcomeOf(t, g, g.Policy.Rules, c); got != worst {
			t.Fatalf("%d, want %d: %+v", got, worst, g.Policy)
		}
	})
}

// TestMoreRulesAreNoLessRestrictive: a further rule never makes an outcome less restrictive, but in two cases, both when
// it matches: it decides to allow or to ask where no other rule decides and the default is stricter; it sets a risk
// below that of the effect where no other rule sets one.
func TestMoreRulesAreNoLessRestrictive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g, c := drawGovernance.Draw(t, "governance"), drawCall.Draw(t, "call")
		extra := drawRule.Draw(t, "extra")
		if matches(extra, c) && (decidesAlone(extra, g.Policy, c) || lowersAlone(extra, g.Policy, c)) {
			t.Skip("the rule is meant to free calls")
		}
		at := rapid.IntRange(0, len(g.Policy.Rules)).Draw(t, "at")
		before, after := outcomeOf(t, g, g.Policy.Rules, c), outcomeOf(t, g, slices.Insert(slices.Clone(g.Policy.Rules), at, extra), c)
		if after < before {
			t.Fatalf("%d, was %d: %+v", after, before, g.Policy)
		}
	})
}

func matches(r schema.PolicyRule, c schema.TurnCall) bool {
	return (r.When == "" || r.When == yes) && (len(r.Tools) == 0 || r.Tools[0] == "q/*" || r.Tools[0] == c.Tool)
}

func decidesAlone(r schema.PolicyRule, p *schema.Policy, c schema.TurnCall) bool {
	other := slices.ContainsFunc(p.Rules, func(o schema.PolicyRule) bool { return o.Action != "" && matches(o, c) })
	return !other && r.Action != "" && strictness(r.Action) < strictness(outcome(schema.Decision{Action: p.Default}))
}

func lowersAlone(r schema.PolicyRule, p *schema.Policy, c schema.TurnCall) bool {
	order := []string{"", schema.RiskLow, schema.RiskMedium, schema.RiskHigh, schema.RiskCritical}
	own := map[string]int{schema.EffectRead: 1, schema.EffectWrite: 2, "": 3}[c.Effect]
	other := slices.ContainsFunc(p.Rules, func(o schema.PolicyRule) bool { return o.Risk != "" && matches(o, c) })
	return !other && r.Risk != "" && slices.Index(order, r.Risk) < own
}
