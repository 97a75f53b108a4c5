package rules_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/schema"
)

// TestFilterOfTheSeed is the example of the section "Tool call filters" in register-tools, as rules.
func TestFilterOfTheSeed(t *testing.T) {
	t.Parallel()
	r := compile(t, &schema.Governance{Filters: []schema.FilterRule{
		{Tools: []string{"sql_query", "file_write"}, Action: schema.ActionDeny},
		{Name: "terms", Tools: []string{"brave_search"}, When: "!has(args.query)", Action: schema.ActionGuide, Text: "Pass the search terms in 'query'."},
		{Tools: []string{"serpapi"}, Action: schema.ActionRedirect, Text: "Use brave_search instead."},
	}})
	for _, tt := range []struct {
		tool string
		args schema.JSONText
		rule string
		want string // that the model reads; empty: the call goes on
	}{
		{"sql_query", `{"sql":"select 1"}`, "filters[0]", "DENIED: a filter of this agent stops this call"},
		{"file_write", `{}`, "filters[0]", "DENIED: a filter of this agent stops this call"},
		{"brave_search", `{"q":"go"}`, "terms", "GUIDANCE: Pass the search terms in 'query'. Adjust the parameters and retry."},
		{"brave_search", `{"query":"go"}`, "", ""},
		{"serpapi", `{"query":"go"}`, "filters[2]", "REDIRECT: Use brave_search instead. Use the alternative."},
		{"read_file", `{"path":"a"}`, "", ""},
	} {
		d := decide(r, tt.tool, tt.args)
		got := ""
		if outcome(d) != schema.ActionAllow {
			res, _ := d.Outcome(&schema.Call{})
			got = res.Output
		}
		if got != tt.want || d.Rule != tt.rule {
			t.Errorf("%s %s: %q by %q, want %q by %q", tt.tool, tt.args, got, d.Rule, tt.want, tt.rule)
		}
	}
}

func TestFilterFirstMatchDecides(t *testing.T) {
	t.Parallel()
	r := compile(t, &schema.Governance{
		Filters: []schema.FilterRule{
			{Tools: []string{"read_*", "q/list"}, Action: schema.ActionAllow},
			{Tools: []string{"read_secret"}, Action: schema.ActionDeny, Text: "never reached"},
			{Name: "rest", Action: schema.ActionDeny, Text: "no"},
		},
		Policy: &schema.Policy{Rules: []schema.PolicyRule{{Tools: []string{"list"}, Action: schema.ActionAsk}}},
	})
	for tool, want := range map[string]schema.Decision{
		"read_secret": {},
		"list":        {Action: schema.ActionAsk, Rule: "policy.rules[0]", Text: "a rule of the policy asks for approval"},
		"bash":        {Action: schema.ActionDeny, Rule: "rest", Text: "no"},
	} {
		if diff := cmp.Diff(want, decide(r, tool, "{}")); diff != "" {
			t.Errorf("%s: %s", tool, diff)
		}
	}
}

func TestFilterStopsAgentsToo(t *testing.T) {
	t.Parallel()
	r := compile(t, &schema.Governance{Filters: []schema.FilterRule{{Action: schema.ActionDeny}}})
	d := r.Decide(context.Background(), &schema.TurnCall{Tool: "helper", Queue: schema.QueueAgents, Args: "{}"})
	if d.Action != schema.ActionDeny {
		t.Errorf("%+v", d)
	}
}

// TestA17RulesGoByIdentity has two tools that a provider's charset makes alike.
func TestA17RulesGoByIdentity(t *testing.T) {
	t.Parallel()
	plain := schema.TurnCall{Tool: "notion_search", Queue: "mcp", Args: "{}"}
	dotted := schema.TurnCall{Tool: "notion_search_5f3a", Target: "notion.search", Queue: "mcp", Args: "{}"}
	posing := schema.TurnCall{Tool: "notion_search", Target: "notion.search", Queue: "mcp", Args: "{}"}
	deny := func(pattern string) *schema.Governance {
		return &schema.Governance{Filters: []schema.FilterRule{{Tools: []string{pattern}, Action: schema.ActionDeny}}}
	}
	only := func(pattern string) *schema.Governance {
		return &schema.Governance{Policy: &schema.Policy{Default: schema.ActionDeny, Rules: []schema.PolicyRule{{Tools: []string{pattern}, Action: schema.ActionAllow}}}}
	}
	for _, tt := range []struct {
		name   string
		rules  *schema.Governance
		call   schema.TurnCall
		denied bool
	}{
		{"deny the dotted: dotted", deny("notion.search"), dotted, true},
		{"deny the dotted: plain", deny("notion.search"), plain, false},
		{"deny the plain: dotted", deny("notion_search"), dotted, false},
		{"deny the plain: plain", deny("notion_search"), plain, true},
		{"deny by the name shown", deny("notion_search_*"), dotted, true},
		{"deny by queue and identity", deny("mcp/notion.search"), dotted, true},
		{"deny another queue's", deny("other/notion.search"), dotted, false},
		{"allow by identity", only("notion.search"), dotted, false},
		{"allow by the name shown frees nothing", only("notion_search"), posing, true},
	} {
		d := compile(t, tt.rules).Decide(context.Background(), &tt.call)
		if got := d.Action == schema.ActionDeny; got != tt.denied {
			t.Errorf("%s: %+v", tt.name, d)
		}
	}
}
