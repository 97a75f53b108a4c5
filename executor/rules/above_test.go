package rules_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jetcrew/jetcrew/executor/rules"
	"github.com/jetcrew/jetcrew/schema"
)

// TestD22PoliciesOfAgentsAbove: a sub-agent may do what its own policy and those of all agents above let it, the most
// restrictive wins, and a rule is named with the agent whose it is.
func TestD22PoliciesOfAgentsAbove(t *testing.T) {
	t.Parallel()
	rule := func(action schema.Action, tools ...string) *schema.Policy {
		return &schema.Policy{Rules: []schema.PolicyRule{{Name: string(action) + "s", Tools: tools, Action: action}}}
	}
	boss := func(p *schema.Policy) schema.Above { return schema.Above{Agent: "boss", Policy: p} }
	staging := rule(schema.ActionDeny, "bash")
	staging.Rules[0].Environments = []string{"staging"}
	lead := rule(schema.ActionAsk, "bash")
	tests := []struct {
		name  string
		own   *schema.Policy
		above []schema.Above
		want  schema.Action
		rule  string
	}{
		{"neither says anything", nil, []schema.Above{boss(nil)}, schema.ActionAllow, ""},
		{"denied above", nil, []schema.Above{boss(rule(schema.ActionDeny, "bash"))}, schema.ActionDeny, "boss: denys"},
		{"denied above, allowed here", rule(schema.ActionAllow, "bash"), []schema.Above{boss(rule(schema.ActionDeny, "bash"))}, schema.ActionDeny, "boss: denys"},
		{"allowed above, denied here", rule(schema.ActionDeny, "bash"), []schema.Above{boss(rule(schema.ActionAllow, "bash"))}, schema.ActionDeny, "denys"},
		{"denied two above", nil, []schema.Above{boss(rule(schema.ActionDeny, "bash")), {Agent: "lead", Policy: rule(schema.ActionAllow)}}, schema.ActionDeny, "boss: denys"},
		{"denied by default above", rule(schema.ActionAllow, "bash"), []schema.Above{boss(&schema.Policy{Default: schema.ActionDeny})}, schema.ActionDeny, "boss: policy.default"},
		{"about another tool", nil, []schema.Above{boss(rule(schema.ActionDeny, "git"))}, schema.ActionAllow, ""},
		{"asks above", nil, []schema.Above{boss(rule(schema.ActionAsk, "bash"))}, schema.ActionAsk, "boss: asks"},
		{"asks above, denied here", rule(schema.ActionDeny, "bash"), []schema.Above{boss(rule(schema.ActionAsk, "bash"))}, schema.ActionDeny, "denys"},
		{"one question of three", rule(schema.ActionAsk, "bash"), []schema.Above{boss(rule(schema.ActionAsk, "bash")), {Agent: "lead", Policy: lead}}, schema.ActionAsk, "asks, boss: asks, lead: asks"},
		{"autonomy above", nil, []schema.Above{boss(&schema.Policy{Autonomy: schema.AutonomySupervised})}, schema.ActionAsk, "boss: policy.autonomy"},
		{"two reasons above", nil, []schema.Above{boss(&schema.Policy{Autonomy: schema.AutonomySupervised, Rules: lead.Rules})}, schema.ActionAsk, "boss: asks, boss: policy.autonomy"},
		{"approval above", nil, []schema.Above{{Agent: "boss", Tools: []schema.ToolSetting{{Ref: "bash", Approval: schema.ApproveAlways}}}}, schema.ActionAsk, "boss: tools[0].approval"},
		{"its environment is its own", nil, []schema.Above{{Agent: "boss", Environment: "staging", Policy: staging}}, schema.ActionDeny, "boss: denys"},
		{"and not that of the run", nil, []schema.Above{boss(staging)}, schema.ActionAllow, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := compile(t, &schema.Governance{Policy: tt.own, Above: tt.above})
			call := &schema.TurnCall{Tool: "bash", Queue: "shell", Args: "{}"}
			ctx := schema.WithScene(context.Background(), schema.Scene{Environment: "test"})
			for name, decide := range map[string]func(context.Context, *schema.TurnCall) schema.Decision{"decide": r.Decide, "authorize": r.Authorize} {
				if d := decide(ctx, call); outcome(d) != tt.want || tt.rule != "" && d.Rule != tt.rule {
					t.Errorf("%s: %+v, want %s by %q", name, d, tt.want, tt.rule)
				}
			}
		})
	}
}

// A policy that cannot be compiled is no policy, also when it is another agent's.
func TestProblemsOfAgentsAbove(t *testing.T) {
	t.Parallel()
	_, err := rules.Compile(&schema.Governance{Above: []schema.Above{
		{Agent: "boss"}, {Agent: "lead", Policy: &schema.Policy{Rules: []schema.PolicyRule{{When: "args.", Action: schema.ActionDeny}}}},
	}})
	if err == nil || !strings.Contains(err.Error(), "above[1].policy.rules[0].when: ") {
		t.Errorf("error %v", err)
	}
}
