package rules_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/executor/rules"
	"github.com/jetcrew/jetcrew/schema"
)

// TestRiskAndAutonomy is the table "Approval by risk" in the notes on register-tools.
func TestRiskAndAutonomy(t *testing.T) {
	t.Parallel()
	effects := []string{schema.EffectRead, schema.EffectWrite, schema.EffectNetwork, schema.EffectDestructive, "", "magic"}
	const critical = "drop"
	for autonomy, asked := range map[string][]bool{ // read, write, network, destructive, none, unknown, critical
		"":                        {false, false, false, false, false, false, true},
		schema.AutonomyFull:       {false, false, false, false, false, false, true},
		schema.AutonomySupervised: {false, false, false, true, true, true, true},
		schema.AutonomyCautious:   {false, true, true, true, true, true, true},
		schema.AutonomyManual:     {true, true, true, true, true, true, true},
	} {
		r := compile(t, &schema.Governance{Policy: &schema.Policy{
			Autonomy: autonomy, Rules: []schema.PolicyRule{{Tools: []string{critical}, Risk: schema.RiskCritical}},
		}})
		for i, want := range asked {
			c := schema.TurnCall{Tool: critical, Queue: "q", Args: "{}"}
			if i < len(effects) {
				c.Tool, c.Effect = "t", effects[i]
			}
			d := r.Decide(context.Background(), &c)
			if got := d.Action == schema.ActionAsk; got != want || got && d.Rule != "policy.autonomy" {
				t.Errorf("%s, %s %q: %+v, want asked: %v", autonomy, c.Tool, c.Effect, d, want)
			}
		}
	}
}

func TestApprovalOfTools(t *testing.T) {
	t.Parallel()
	const read, write, destructive = schema.EffectRead, schema.EffectWrite, schema.EffectDestructive
	for _, tt := range []struct {
		approval, autonomy, effect string
		asked                      bool
	}{
		{schema.ApproveAlways, schema.AutonomyFull, read, true},
		{schema.ApproveAlways, schema.AutonomyManual, read, true},
		{schema.ApproveAsk, schema.AutonomyFull, destructive, false},
		{schema.ApproveAsk, schema.AutonomySupervised, read, true},
		{schema.ApproveSafe, schema.AutonomyFull, destructive, false},
		{schema.ApproveSafe, schema.AutonomySupervised, read, false},
		{schema.ApproveSafe, schema.AutonomySupervised, write, true},
		{schema.ApproveSafe, schema.AutonomyManual, read, true}, // the autonomy asks by itself
		{schema.ApproveNever, schema.AutonomyManual, destructive, false},
		{"", schema.AutonomyCautious, write, true},
		{"", schema.AutonomySupervised, write, false},
	} {
		r := compile(t, &schema.Governance{
			Tools: []schema.ToolSetting{{Ref: "t*", Approval: tt.approval}, {Ref: "*", Approval: schema.ApproveAlways}}, Policy: &schema.Policy{Autonomy: tt.autonomy},
		})
		d := r.Decide(context.Background(), &schema.TurnCall{Tool: "t", Queue: "q", Effect: tt.effect, Args: "{}"})
		if got := d.Action == schema.ActionAsk; got != tt.asked {
			t.Errorf("%+v: %+v", tt, d)
		}
	}
}

func TestApprovalNeverKeepsRulesThatAsk(t *testing.T) {
	t.Parallel()
	r := compile(t, &schema.Governance{
		Tools:  []schema.ToolSetting{{Ref: "bash", Approval: schema.ApproveNever}},
		Policy: &schema.Policy{Presets: []string{rules.PresetSafe}, Autonomy: schema.AutonomyManual},
	})
	want := schema.Decision{Action: schema.ActionAsk, Rule: "preset:safe", Text: "this tool changes files or runs commands"}
	if diff := cmp.Diff(want, decide(r, "bash", "{}")); diff != "" {
		t.Error(diff)
	}
}

func TestApprovalWithoutPolicy(t *testing.T) {
	t.Parallel()
	r := compile(t, &schema.Governance{Tools: []schema.ToolSetting{{Ref: "bash", Approval: schema.ApproveAlways}}})
	if d := decide(r, "bash", "{}"); d.Action != schema.ActionAsk || d.Rule != "tools[0].approval" {
		t.Errorf("%+v", d)
	}
	if d := decide(r, "ls", "{}"); outcome(d) != schema.ActionAllow {
		t.Errorf("%+v", d)
	}
}

func TestPolicyMostRestrictiveWins(t *testing.T) {
	t.Parallel()
	allow, ask, deny := schema.PolicyRule{Action: schema.ActionAllow}, schema.PolicyRule{Action: schema.ActionAsk, Text: "look"}, schema.PolicyRule{Name: "no", Action: schema.ActionDeny}
	elsewhere := schema.PolicyRule{Tools: []string{"other"}, Action: schema.ActionDeny}
	risky := schema.PolicyRule{Risk: schema.RiskLow}
	for _, tt := range []struct {
		name     string
		rules    []schema.PolicyRule
		fallback schema.Action
		want     schema.Action
		rule     string
	}{
		{"none", nil, "", schema.ActionAllow, ""},
		{"default deny", nil, schema.ActionDeny, schema.ActionDeny, "policy.default"},
		{"default ask", []schema.PolicyRule{elsewhere}, schema.ActionAsk, schema.ActionAsk, "policy.default"},
		{"a risk is no action", []schema.PolicyRule{risky}, schema.ActionDeny, schema.ActionDeny, "policy.default"},
		{"allow instead of the default", []schema.PolicyRule{allow}, schema.ActionDeny, schema.ActionAllow, "policy.rules[0]"},
		{"ask over allow", []schema.PolicyRule{allow, ask}, "", schema.ActionAsk, "policy.rules[1]"},
		{"deny over ask", []schema.PolicyRule{allow, ask, deny}, "", schema.ActionDeny, "no"},
		{"deny first", []schema.PolicyRule{deny, allow}, schema.ActionAllow, schema.ActionDeny, "no"},
		{"all that ask", []schema.PolicyRule{ask, allow, ask}, "", schema.ActionAsk, "policy.rules[0], policy.rules[2]"},
	} {
		r := compile(t, &schema.Governance{Policy: &schema.Policy{Rules: tt.rules, Default: tt.fallback}})
		if d := decide(r, "t", "{}"); outcome(d) != tt.want || d.Rule != tt.rule {
			t.Errorf("%s: %+v, want %s by %q", tt.name, d, tt.want, tt.rule)
		}
	}
}

func TestPolicyDimensions(t *testing.T) {
	t.Parallel()
	r := compile(t, &schema.Governance{
		Environment: "production",
		Policy: &schema.Policy{Rules: []schema.PolicyRule{
			{Tools: []string{"orders/*"}, Effects: []string{schema.EffectDestructive}, Environments: []string{"production", "staging"}, When: "args.amount > 100", Action: schema.ActionDeny},
		}},
	})
	for _, tt := range []struct {
		queue, effect string
		args          schema.JSONText
		denied        bool
	}{
		{"orders", schema.EffectDestructive, `{"amount":101}`, true},
		{"orders", "", `{"amount":100.5}`, true},
		{"orders", "", `{"amount":100}`, false},
		{"orders", schema.EffectWrite, `{"amount":101}`, false},
		{"shop", "", `{"amount":101}`, false},
	} {
		d := r.Decide(context.Background(), &schema.TurnCall{Tool: "refund", Queue: tt.queue, Effect: tt.effect, Args: tt.args})
		if got := d.Action == schema.ActionDeny; got != tt.denied {
			t.Errorf("%+v: %+v", tt, d)
		}
	}
}

func TestPolicyTakesTheEnvironmentOfTheScene(t *testing.T) {
	t.Parallel()
	g := schema.Governance{Policy: &schema.Policy{Rules: []schema.PolicyRule{{Environments: []string{"production"}, Action: schema.ActionDeny}}}}
	ctx := schema.WithScene(context.Background(), schema.Scene{Environment: "production"})
	call := &schema.TurnCall{Tool: "t", Queue: "q", Args: "{}"}
	if d := compile(t, &g).Decide(ctx, call); d.Action != schema.ActionDeny {
		t.Errorf("%+v", d)
	}
	g.Environment = "test" // the agent's own holds
	if d := compile(t, &g).Decide(ctx, call); outcome(d) != schema.ActionAllow {
		t.Errorf("%+v", d)
	}
}

func TestRiskOfRules(t *testing.T) {
	t.Parallel()
	low, high := schema.PolicyRule{Risk: schema.RiskLow}, schema.PolicyRule{Risk: schema.RiskHigh}
	broken := schema.PolicyRule{Risk: schema.RiskMedium, When: "args.missing == 1"}
	for _, tt := range []struct {
		name   string
		rules  []schema.PolicyRule
		effect string
		asked  bool
	}{
		{"of the effect", nil, "", true},
		{"lowered", []schema.PolicyRule{low}, "", false},
		{"the highest that is set", []schema.PolicyRule{low, high, low}, schema.EffectRead, true},
		{"one that may match raises", []schema.PolicyRule{low, broken}, "", true},
		{"one that may match does not lower", []schema.PolicyRule{broken}, "", true},
	} {
		autonomy := schema.AutonomySupervised
		if tt.name == "one that may match raises" {
			autonomy = schema.AutonomyCautious
		}
		r := compile(t, &schema.Governance{Policy: &schema.Policy{Rules: tt.rules, Autonomy: autonomy}})
		d := r.Decide(context.Background(), &schema.TurnCall{Tool: "t", Queue: "q", Effect: tt.effect, Args: "{}"})
		if got := d.Action == schema.ActionAsk; got != tt.asked {
			t.Errorf("%s: %+v", tt.name, d)
		}
	}
}

func TestPresets(t *testing.T) {
	t.Parallel()
	const allow, ask, deny = schema.ActionAllow, schema.ActionAsk, schema.ActionDeny
	calls := []schema.TurnCall{
		{Tool: "read_file", Effect: schema.EffectRead},
		{Tool: "write_file", Effect: schema.EffectWrite},
		{Tool: "apply_patch", Effect: schema.EffectWrite},
		{Tool: "edit"},
		{Tool: "bash", Effect: schema.EffectDestructive},
		{Tool: "fetch", Effect: schema.EffectNetwork},
		{Tool: "odd", Effect: "odd"},
	}
	for name, want := range map[string][]schema.Action{
		rules.PresetSafe:          {allow, ask, ask, ask, ask, allow, allow},
		rules.PresetReadOnly:      {allow, deny, deny, deny, deny, deny, deny},
		rules.PresetNoNetwork:     {allow, allow, allow, allow, allow, deny, allow},
		rules.PresetNoDestructive: {allow, allow, allow, deny, deny, allow, deny},
	} {
		r := compile(t, &schema.Governance{Policy: &schema.Policy{Presets: []string{name}}})
		for i, c := range calls {
			c.Queue, c.Args = "q", "{}"
			if d := r.Decide(context.Background(), &c); outcome(d) != want[i] || outcome(d) != allow && d.Rule != "preset:"+name {
				t.Errorf("%s, %s: %+v, want %s", name, c.Tool, d, want[i])
			}
		}
	}
	for _, name := range rules.Presets() {
		if len(rules.Preset(name)) == 0 {
			t.Errorf("preset %s is empty", name)
		}
	}
}
