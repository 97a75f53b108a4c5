package rules_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/jetcrew/jetcrew/executor/rules"
	"github.com/jetcrew/jetcrew/schema"
)

// TestCompileListsEveryProblem has a governance with one of each.
func TestCompileListsEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := rules.Compile(&schema.Governance{
		Tools: []schema.ToolSetting{
			{Approval: "sometimes", TimeoutMS: -1, Bind: `[1]`},
			{Ref: "files/", Bind: `{"a":1,"a":2}`},
			{Ref: " x", Bind: `{"${run}":1,"b":"${user} and ${principal.tenant","c":"${principal.id}"}`},
		},
		Filters: []schema.FilterRule{
			{Tools: []string{"a", ""}, Action: schema.ActionGuide},
			{Action: schema.ActionRedirect, When: "args.x = 1"},
			{Action: schema.ActionAsk, When: "tool + 1 == 2 ||\n  user == \"x\""},
			{When: "size(tool)"},
			{Name: "twin", Action: "block", When: "principal.name == principal['mail']"},
		},
		Policy: &schema.Policy{
			Presets:  []string{"safe", "unsafe", "safe", ""},
			Default:  schema.ActionGuide,
			Autonomy: "half",
			Rules: []schema.PolicyRule{
				{Name: "twin", Tools: []string{"a\nb"}, Effects: []string{"read", "erase"}, Environments: []string{""}, Action: schema.ActionRedirect, Risk: "huge"},
				{When: `tool.matches("(")`},
				{Name: "policy.autonomy", Action: "permit"},
				{Name: "tools[0].approval", Action: schema.ActionAsk},
				{Name: "a, b", Action: schema.ActionAsk},
			},
			ExpiresMS: -1,
		},
	})
	var got rules.Problems
	if !errors.As(err, &got) {
		t.Fatalf("%v", err)
	}
	want := rules.Problems{
		{Path: "tools[0].ref", Code: rules.CodePattern},
		{Path: "tools[0].approval", Code: rules.CodeUnknown},
		{Path: "tools[0].timeout_ms", Code: rules.CodeRange},
		{Path: "tools[0].bind", Code: rules.CodeBind},
		{Path: "tools[1].ref", Code: rules.CodePattern},
		{Path: "tools[1].bind", Code: rules.CodeBind},
		{Path: "tools[2].ref", Code: rules.CodePattern},
		{Path: "tools[2].bind", Code: rules.CodeBind},
		{Path: "tools[2].bind", Code: rules.CodeUnknown},
		{Path: "tools[2].bind", Code: rules.CodeBind},
		{Path: "filters[0].tools[1]", Code: rules.CodePattern},
		{Path: "filters[0].text", Code: rules.CodeMissing},
		{Path: "filters[1].when", Code: rules.CodeCondition, Line: 1, Column: 8},
		{Path: "filters[1].when", Code: rules.CodeCondition, Line: 1, Column: 10},
		{Path: "filters[1].text", Code: rules.CodeMissing},
		{Path: "filters[2].when", Code: rules.CodeCondition, Line: 1, Column: 6},
		{Path: "filters[2].when", Code: rules.CodeCondition, Line: 2, Column: 3},
		{Path: "filters[2].action", Code: rules.CodeUnknown},
		{Path: "filters[3].when", Code: rules.CodeCondition},
		{Path: "filters[3].action", Code: rules.CodeMissing},
		{Path: "filters[4].when", Code: rules.CodeCondition, Line: 1, Column: 10},
		{Path: "filters[4].when", Code: rules.CodeCondition, Line: 1, Column: 28},
		{Path: "filters[4].action", Code: rules.CodeUnknown},
		{Path: "policy.default", Code: rules.CodeUnknown},
		{Path: "policy.rules[0].name", Code: rules.CodeDuplicate},
		{Path: "policy.rules[0].tools[0]", Code: rules.CodePattern},
		{Path: "policy.rules[0].effects[1]", Code: rules.CodeUnknown},
		{Path: "policy.rules[0].environments[0]", Code: rules.CodeMissing},
		{Path: "policy.rules[0].risk", Code: rules.CodeUnknown},
		{Path: "policy.rules[0].action", Code: rules.CodeUnknown},
		{Path: "policy.rules[1].when", Code: rules.CodeCondition, Line: 1, Column: 14},
		{Path: "policy.rules[1].action", Code: rules.CodeMissing},
		{Path: "policy.rules[2].name", Code: rules.CodeDuplicate},
		{Path: "policy.rules[2].action", Code: rules.CodeUnknown},
		{Path: "policy.rules[3].name", Code: rules.CodeDuplicate},
		{Path: "policy.rules[4].name", Code: rules.CodeName},
		{Path: "policy.presets[1]", Code: rules.CodeUnknown},
		{Path: "policy.presets[2]", Code: rules.CodeDuplicate},
		{Path: "policy.presets[3]", Code: rules.CodeMissing},
		{Path: "policy.autonomy", Code: rules.CodeUnknown},
		{Path: "policy.expires_ms", Code: rules.CodeRange},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(rules.Problem{}, "Text")); diff != "" {
		t.Error(diff)
	}
	for _, p := range got {
		if p.Text == "" || strings.Contains(p.Text, "%!") || strings.Contains(p.Text, "\n") {
			t.Errorf("%s: %q", p.Path, p.Text)
		}
	}
}

func TestProblemText(t *testing.T) {
	t.Parallel()
	_, err := rules.Compile(&schema.Governance{
		Filters: []schema.FilterRule{{When: "arg.x == 1", Action: schema.ActionDeny}},
		Policy:  &schema.Policy{Autonomy: "auto"},
	})
	const want = "governance: filters[0].when: undeclared reference to 'arg' (did you mean 'args'?) (column 1)\n" +
		`policy.autonomy: "auto" is no autonomy; there are full-auto, supervised, cautious and manual`
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

func TestCompileOfNothing(t *testing.T) {
	t.Parallel()
	for _, g := range []*schema.Governance{nil, {}, {Policy: &schema.Policy{}}} {
		if d := decide(compile(t, g), "t", "{}"); d.Action != "" {
			t.Errorf("%+v: %+v", g, d)
		}
	}
}
