package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// sent returns the body that a request becomes.
func sent(t *testing.T, req model.Request) map[string]any {
	t.Helper()
	e := jsonAnswer(whole("stop", `{"content":"ok"}`))
	if _, err := ask(t, e, false, req); err != nil {
		t.Fatal(err)
	}
	if e.path != "/v1/chat/completions" || e.auth != "Bearer "+testKey {
		t.Errorf("path %q, authorization %q", e.path, e.auth)
	}
	return e.got
}

func parsed(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRequest(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 65)
	call := func(label, name, args string) schema.MessageCall {
		return schema.MessageCall{Label: label, Name: name, Args: args}
	}
	tool := func(label, text string, failed bool) schema.Message {
		return schema.Message{Role: schema.RoleTool, Label: label, Text: text, Error: failed}
	}
	cases := []struct {
		name string
		in   []schema.Message
		want string
	}{
		{"roles", []schema.Message{{Role: "system", Text: "be"}, {Role: "user", Text: "a"}, {Role: "user", Text: "<b>"}, {Role: "assistant", Text: "c"}}, `[{"role":"system","content":"be"},{"role":"user","content":"a"},{"role":"user","content":"<b>"},{"role":"assistant","content":"c"}]`},
		{"assistant without text and calls", []schema.Message{{Role: "assistant"}}, `[{"role":"assistant","content":"(no answer)"}]`},
		{"A02 null and A09 cut arguments", []schema.Message{
			{Role: "assistant", Calls: []schema.MessageCall{call("a", "ping", "null"), call("b", "write", `{"p":"ab`), call("c", "read", `{"n":1.50}`)}},
			tool("a", "1", false), tool("b", "2", true), tool("c", "3", false),
		}, `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ping","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"write","arguments":"{}"}},{"id":"c","type":"function","function":{"name":"read","arguments":"{\"n\":1.50}"}}]},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"2"},{"role":"tool","tool_call_id":"c","content":"3"}]`},
		{"A13 empty, missing and swapped results", []schema.Message{
			{Role: "assistant", Text: "so", Calls: []schema.MessageCall{call("a", "x", "{}"), call("b", "x", "{}"), call("c", "x", "{}")}},
			tool("c", "3", false), tool("b", "", true),
			{Role: "user", Text: "and?"},
		}, `[{"role":"assistant","content":"so","tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"x","arguments":"{}"}},{"id":"c","type":"function","function":{"name":"x","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"(no result was recorded)"},{"role":"tool","tool_call_id":"b","content":"(no output)"},{"role":"tool","tool_call_id":"c","content":"3"},{"role":"user","content":"and?"}]`},
		{"A22 bad bytes and lone surrogates", []schema.Message{
			{Role: "assistant", Calls: []schema.MessageCall{call("a", "x", `{"p":"\ud99c","q":"\ud83d\ude42","r":"\\ud99c"}`)}},
			tool("a", "\xff\xed\xa0\xbd", false),
		}, `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{\"p\":\"\\ufffd\",\"q\":\"\\ud83d\\ude42\",\"r\":\"\\\\ud99c\"}"}}]},{"role":"tool","tool_call_id":"a","content":"\ufffd"}]`},
		{"A12 long id", []schema.Message{{Role: "assistant", Calls: []schema.MessageCall{call(long, "x", "{}")}}, tool(long, "1", false)}, fmt.Sprintf(`[{"role":"assistant","content":null,"tool_calls":[{"id":%[1]q,"type":"function","function":{"name":"x","arguments":"{}"}}]},{"role":"tool","tool_call_id":%[1]q,"content":"1"}]`, idRule.Fit(long))},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(parsed(t, c.want), sent(t, model.Request{Messages: c.in})["messages"]); d != "" {
				t.Errorf("messages (-want +got):\n%s", d)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	got := sent(t, model.Request{Options: `{"temperature":0.5,"max_tokens":10,"parallelToolCalls":true,"maxParallelToolCalls":3,"toolCallTimeoutMillis":5,"parallel_tool_calls":true,"max_parallel_tool_calls":1,"tool_call_timeout_millis":2,"tool_choice":"auto","stream_options":{"include_usage":true}}`})
	delete(got, "messages")
	if d := cmp.Diff(map[string]any{"model": "m-1", "temperature": 0.5, "max_tokens": 10.0}, got); d != "" {
		t.Errorf("body (-want +got):\n%s", d)
	}
	for _, bad := range []schema.JSONText{`[1]`, `{"messages":[]}`, `{"stream":true}`} {
		_, err := ask(t, jsonAnswer("{}"), false, model.Request{Options: bad})
		if !isKind(err, model.BadRequest) {
			t.Errorf("options %s: %v", bad, err)
		}
	}
}

func TestToolNamesThereAndBack(t *testing.T) {
	t.Parallel()
	names := []string{"notion.search", "notion_search", "管理/删除", strings.Repeat("n", 70) + "1", strings.Repeat("n", 70) + "2"}
	var tools []schema.Tool
	for _, n := range names {
		tools = append(tools, schema.Tool{Name: n, Parameters: `{"type":"object"}`})
	}
	seen := map[string]bool{}
	for _, tool := range sent(t, model.Request{Tools: tools})["tools"].([]any) {
		f := tool.(map[string]any)["function"].(map[string]any)
		seen[f["name"].(string)] = true
		if d := cmp.Diff(parsed(t, `{"type":"object","properties":{}}`), f["parameters"]); d != "" {
			t.Errorf("parameters (-want +got):\n%s", d)
		}
	}
	if len(seen) != len(names) || !seen["notion_search"] {
		t.Fatalf("names %v", seen)
	}
	for out := range seen {
		got, err := ask(t, jsonAnswer(whole("tool_calls", `{"tool_calls":[{"id":"a","function":{"name":"`+out+`","arguments":"{}"}}]}`)), false, model.Request{Tools: tools})
		if err != nil {
			t.Fatal(err)
		}
		if name := got.Calls[0].Name; name != out && len(out) > 64 || !contains(names, name) {
			t.Errorf("%q came back as %q", out, name)
		}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func TestNew(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	if _, err := New(Config{Model: "m"}); !isKind(err, model.Auth) || !strings.Contains(err.Error(), "OPENAI_API_KEY") {
		t.Errorf("no key: %v", err)
	}
	if _, err := New(Config{}); !isKind(err, model.BadRequest) {
		t.Errorf("no model: %v", err)
	}
	t.Setenv("OPENAI_BASE_URL", "ftp://x")
	if _, err := New(Config{Model: "m"}); !isKind(err, model.BadRequest) {
		t.Errorf("bad address: %v", err)
	}
}

func TestEndpointFromTheEnvironmentWithoutKey(t *testing.T) {
	e := jsonAnswer(whole("stop", `{"content":"ok"}`))
	c := start(t, e)
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_ADMIN_KEY", "sk-admin")
	t.Setenv("OPENAI_BASE_URL", c.at.URL+"/")
	c, err := New(Config{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Generate(context.Background(), &model.Request{}); err != nil {
		t.Fatal(err)
	}
	if e.auth != "" || e.path != "/v1/chat/completions" {
		t.Errorf("authorization %q, path %q", e.auth, e.path)
	}
}
