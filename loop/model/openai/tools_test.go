package openai

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// sentNames returns the provider's names of the tools of a request, by ours.
func sentNames(t *testing.T, tools []schema.Tool) map[string]string {
	t.Helper()
	names := map[string]string{}
	for i, tool := range sent(t, model.Request{Tools: tools})["tools"].([]any) {
		names[tools[i].Name] = tool.(map[string]any)["function"].(map[string]any)["name"].(string)
	}
	return names
}

func TestA17NamesStayTheSame(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 70)
	var tools []schema.Tool
	for _, n := range []string{"notion.search", "notion_search", "管理/删除", long + "-a-of-ninety-chars", long + "-b-of-ninety-chars"} {
		tools = append(tools, schema.Tool{Name: n, Description: "Does it."})
	}
	first := sentNames(t, tools)
	seen := map[string]bool{}
	for name, out := range first {
		if seen[out] || len(out) > 64 || !slices.Contains([]string{"notion_search", out}, out) {
			t.Errorf("%q is sent as %q", name, out)
		}
		seen[out] = true
	}
	slices.Reverse(tools)
	if diff := cmp.Diff(first, sentNames(t, tools)); diff != "" {
		t.Errorf("listed anew in another order: %s", diff)
	}
	for _, tool := range tools { // a server that is away, or a restart with fewer tools
		if got := sentNames(t, []schema.Tool{tool})[tool.Name]; got != first[tool.Name] {
			t.Errorf("alone %q is sent as %q, among others as %q", tool.Name, got, first[tool.Name])
		}
	}
	if first["notion_search"] != "notion_search" {
		t.Errorf("a legal name was changed: %q", first["notion_search"])
	}
}

func TestA17HistoryAndAnswer(t *testing.T) {
	t.Parallel()
	tools := []schema.Tool{{Name: "notion.search"}, {Name: "notion_search"}}
	out := sentNames(t, tools)["notion.search"]
	history := []schema.Message{
		{Role: schema.RoleUser, Text: "go"},
		{Role: schema.RoleAssistant, Calls: []schema.MessageCall{{Label: "a", Name: "notion.search", Args: "{}"}}},
		{Role: schema.RoleTool, Label: "a", Name: "notion.search", Text: "found"},
	}
	msgs := sent(t, model.Request{Tools: tools, Messages: history})["messages"].([]any)
	if got := msgs[1].(map[string]any)["tool_calls"].([]any)[0].(map[string]any)["function"].(map[string]any)["name"]; got != out {
		t.Errorf("the history says %v, the tool %q", got, out)
	}
	for name, want := range map[string]string{out: "notion.search", "notion_search": "notion_search", "notion.search": "notion.search"} {
		got, err := ask(t, jsonAnswer(whole("tool_calls", `{"tool_calls":[{"id":"a","function":{"name":"`+name+`","arguments":"{}"}}]}`)), false, model.Request{Tools: tools})
		if err != nil || got.Calls[0].Name != want {
			t.Errorf("%q came back as %+v, %v", name, got, err)
		}
	}
}

func TestA18NeverMoreThanTheCap(t *testing.T) {
	t.Parallel()
	var tools []schema.Tool
	for i := range 334 {
		tools = append(tools, schema.Tool{Name: "t" + strings.Repeat("i", i%60) + string(rune('a'+i%26)) + string(rune('a'+i/26)), Source: "server"})
	}
	tools[333] = schema.Tool{Name: "zz_own"}
	e := jsonAnswer(whole("stop", `{"content":"ok"}`))
	got, err := ask(t, e, false, model.Request{Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	list := e.got["tools"].([]any)
	if len(list) != 128 || len(got.Unfit) != 334-128 || list[127].(map[string]any)["function"].(map[string]any)["name"] != "zz_own" {
		t.Errorf("%d tools are sent, %d named", len(list), len(got.Unfit))
	}
}

func TestA19OneOddToolDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	tools := []schema.Tool{
		{Name: "union", Parameters: `{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"array"}}}]}`},
		{Name: "broken", Parameters: `{"type":"strin"}`},
		{Name: "brackets", Parameters: `{"type":"object","properties":{"filter[id]":{"type":"string"}}}`},
		{Name: "long", Description: strings.Repeat("word ", 300), Parameters: `{"type":"object","properties":{}}`},
	}
	e := jsonAnswer(whole("stop", `{"content":"ok"}`))
	got, err := ask(t, e, false, model.Request{Tools: tools})
	if err != nil || len(got.Unfit) != 1 || got.Unfit[0].Tool != "broken" {
		t.Fatalf("unfit %+v, %v", got.Unfit, err)
	}
	list := e.got["tools"].([]any)
	if len(list) != 3 {
		t.Fatalf("%d tools are sent", len(list))
	}
	p := list[0].(map[string]any)["function"].(map[string]any)["parameters"].(map[string]any)
	if p["type"] != "object" || p["anyOf"] != nil || p["required"] != nil || len(p["properties"].(map[string]any)) != 2 {
		t.Errorf("parameters %v", p)
	}
	if n := len(list[2].(map[string]any)["function"].(map[string]any)["description"].(string)); n > 1024 {
		t.Errorf("a description of %d characters", n)
	}
}

func TestA20OptionalsStayOptional(t *testing.T) {
	t.Parallel()
	params := `{"type":"object","properties":{"id":{"type":"string"},"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"integer"},"d":{"type":"boolean"}},"required":["id"]}`
	f := sent(t, model.Request{Tools: []schema.Tool{{Name: "x", Parameters: schema.JSONText(params)}}})["tools"].([]any)[0].(map[string]any)["function"].(map[string]any)
	if diff := cmp.Diff(parsed(t, params), f["parameters"]); diff != "" || f["strict"] != nil {
		t.Errorf("%v: %s", f, diff)
	}
	for _, args := range []string{`{"id":"7"}`, `{"id":"7","extra":{"n":1.50}}`} {
		got, err := ask(t, jsonAnswer(whole("tool_calls", `{"tool_calls":[{"id":"a","function":{"name":"x","arguments":`+quote(args)+`}}]}`)), false, model.Request{Tools: []schema.Tool{{Name: "x", Parameters: schema.JSONText(params)}}})
		if err != nil || got.Calls[0].Args != args {
			t.Errorf("%s: %+v, %v", args, got, err)
		}
	}
}

func quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }
