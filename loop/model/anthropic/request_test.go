package anthropic

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
	e := jsonAnswer(whole("end_turn", `[{"type":"text","text":"ok"}]`))
	if _, err := ask(t, e, false, req); err != nil {
		t.Fatal(err)
	}
	if e.path != "/v1/messages" || e.key != testKey || e.bearer != "Bearer "+testKey {
		t.Errorf("path %q, key %q, authorization %q", e.path, e.key, e.bearer)
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

func say(role, blocks string) string {
	return fmt.Sprintf(`{"role":%q,"content":[%s]}`, role, blocks)
}

func txt(s string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, s) }

func use(id, args string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"x","input":%s}`, id, args)
}

func result(id, text, more string) string {
	return fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":[%s]%s}`, id, txt(text), more)
}

const isError = `,"is_error":true`

func TestMessages(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 94)
	call := func(label, args string) schema.MessageCall {
		return schema.MessageCall{Label: label, Name: "x", Args: args}
	}
	tool := func(label, text string, failed bool) schema.Message {
		return schema.Message{Role: schema.RoleTool, Label: label, Text: text, Error: failed}
	}
	user := func(s string) schema.Message { return schema.Message{Role: schema.RoleUser, Text: s} }
	cases := []struct {
		name string
		in   []schema.Message
		want []string
	}{
		{"one user message for those that follow each other", []schema.Message{user("a"), user(" "), {Role: "system", Text: "hurry"}, user("b")}, []string{say("user", txt("a")+","+txt("[system] hurry")+","+txt("b"))}},
		{"assistant first, without text and calls", []schema.Message{{Role: "assistant", Text: " \n"}}, []string{say("user", txt("(the conversation begins)")), say("assistant", txt("(no answer)"))}},
		{"nothing", []schema.Message{{Role: "system", Text: "be"}}, []string{say("user", txt("(no message)"))}},
		{"A13 results of one turn in one message in call order", []schema.Message{
			user("go"),
			{Role: "assistant", Text: "so", Calls: []schema.MessageCall{call("a", "{}"), call("b", "{}"), call("c", "{}")}},
			tool("a", "1", false), tool("b", "", true), tool("c", "TOOL_ERROR: cancelled", true), user("and?"),
		}, []string{
			say("user", txt("go")), say("assistant", txt("so")+","+use("a", "{}")+","+use("b", "{}")+","+use("c", "{}")),
			say("user", result("a", "1", "")+","+result("b", "(no output)", isError)+","+result("c", "TOOL_ERROR: cancelled", isError)+","+txt("and?")),
		}},
		{"A14 six calls of one function, whatever became of them, are one message of six results", []schema.Message{
			user("go"),
			{Role: "assistant", Calls: []schema.MessageCall{call("a", "{}"), call("b", "{}"), call("c", "{}"), call("d", "{}"), call("e", "{}"), call("f", "{}")}},
			tool("a", "1", false), tool("b", "TOOL_ERROR: failed", true), tool("c", "TOOL_ERROR: timeout", true),
			tool("d", "DENIED: no", true), tool("e", "TOOL_ERROR: failed", true), tool("f", "6", false),
		}, []string{
			say("user", txt("go")),
			say("assistant", strings.Join([]string{use("a", "{}"), use("b", "{}"), use("c", "{}"), use("d", "{}"), use("e", "{}"), use("f", "{}")}, ",")),
			say("user", strings.Join([]string{
				result("a", "1", ""), result("b", "TOOL_ERROR: failed", isError), result("c", "TOOL_ERROR: timeout", isError),
				result("d", "DENIED: no", isError), result("e", "TOOL_ERROR: failed", isError), result("f", "6", ""),
			}, ",")),
		}},
		{"A02 null and A09 cut arguments", []schema.Message{
			user("go"),
			{Role: "assistant", Calls: []schema.MessageCall{call("a", "null"), call("b", `{"p":"ab`), call("c", `{"n":1.5}`)}},
			tool("a", "1", false), tool("b", "2", false), tool("c", "3", false),
		}, []string{
			say("user", txt("go")), say("assistant", use("a", "{}")+","+use("b", "{}")+","+use("c", `{"n":1.5}`)),
			say("user", result("a", "1", "")+","+result("b", "2", "")+","+result("c", "3", "")),
		}},
		{"A12 long, illegal and repeated ids", []schema.Message{
			user("go"),
			{Role: "assistant", Calls: []schema.MessageCall{call(long, "{}"), call("grep:3", "{}")}},
			tool(long, "1", false), tool("grep:3", "2", false),
			{Role: "assistant", Calls: []schema.MessageCall{call("a", "{}")}},
			tool("a", "3", false),
			{Role: "assistant", Calls: []schema.MessageCall{call("a", "{}")}},
			tool("a", "4", false),
		}, []string{
			say("user", txt("go")),
			say("assistant", use(idRule.Fit(long), "{}")+","+use(idRule.Fit("grep:3"), "{}")), say("user", result(idRule.Fit(long), "1", "")+","+result(idRule.Fit("grep:3"), "2", "")),
			say("assistant", use("a", "{}")), say("user", result("a", "3", "")),
			say("assistant", use(idRule.Fit("a 2"), "{}")), say("user", result(idRule.Fit("a 2"), "4", "")),
		}},
		{"A22 bad bytes and lone surrogates", []schema.Message{
			user("\xff"), {Role: "assistant", Calls: []schema.MessageCall{call("a", `{"p":"\ud99c"}`)}}, tool("a", "\xed\xa0\xbd", false),
		}, []string{say("user", txt("\uFFFD")), say("assistant", use("a", `{"p":"\ufffd"}`)), say("user", result("a", "\uFFFD", ""))}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := parsed(t, "["+strings.Join(c.want, ",")+"]")
			if d := cmp.Diff(want, sent(t, model.Request{Messages: c.in})["messages"]); d != "" {
				t.Errorf("messages (-want +got):\n%s", d)
			}
		})
	}
}

// history returns an answer as it stands in memory, with its results.
func history(r *model.Response) []schema.Message {
	m := schema.Message{Role: schema.RoleAssistant, Text: r.Text, Items: r.Items}
	out := []schema.Message{{Role: schema.RoleUser, Text: "go"}, m}
	for _, c := range r.Calls {
		out[1].Calls = append(out[1].Calls, schema.MessageCall{Label: c.ID, Name: c.Name, Args: c.Args})
		out = append(out, schema.Message{Role: schema.RoleTool, Label: c.ID, Text: "done"})
	}
	return out
}

func TestThinkingGoesBackUnchanged(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		e := jsonAnswer(testdata(t, "thinking.json"))
		if stream {
			e = streamAnswer(testdata(t, "thinking.sse"))
		}
		r, err := ask(t, e, stream, model.Request{})
		if err != nil {
			t.Fatal(err)
		}
		var was struct{ Content []any }
		if err := json.Unmarshal([]byte(testdata(t, "thinking.json")), &was); err != nil {
			t.Fatal(err)
		}
		was.Content[2].(map[string]any)["text"] = "I look." // white space at the end of a block is refused
		got := sent(t, model.Request{Messages: history(r)})["messages"].([]any)[1].(map[string]any)["content"]
		if d := cmp.Diff(any(was.Content), got); d != "" {
			t.Errorf("stream %v: assistant blocks (-received +sent):\n%s", stream, d)
		}
	}
}

func TestItemsOfAnotherProviderOrText(t *testing.T) {
	t.Parallel()
	items := &schema.Items{Provider: Provider, Data: []byte(`[{"block":{"type":"redacted_thinking","data":"x"}},{"text":3},{"call":true}]`)}
	cases := []struct {
		name  string
		items *schema.Items
		want  string
	}{
		{"the text was changed", items, `[{"type":"redacted_thinking","data":"x"},` + txt("other") + "]"},
		{"another provider's", &schema.Items{Provider: "openai", Data: items.Data}, "[" + txt("other") + "]"},
		{"not readable", &schema.Items{Provider: Provider, Data: []byte("{")}, "[" + txt("other") + "]"},
		{"blocks that are none", &schema.Items{Provider: Provider, Data: []byte(`[{"text":5}]`)}, "[" + txt("other") + "]"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := sent(t, model.Request{Messages: []schema.Message{{Role: "user", Text: "go"}, {Role: "assistant", Text: "other", Items: c.items}}})["messages"].([]any)[1].(map[string]any)["content"]
			if d := cmp.Diff(parsed(t, c.want), got); d != "" {
				t.Errorf("blocks (-want +got):\n%s", d)
			}
		})
	}
}

func TestRequestFields(t *testing.T) {
	t.Parallel()
	msgs := []schema.Message{{Role: "system", Text: "be"}, {Role: "system", Text: "brief"}, {Role: "user", Text: "go"}}
	got := sent(t, model.Request{Messages: msgs, Tools: []schema.Tool{{Name: "a.b", Description: "d"}}, Options: `{"max_tokens":10,"maxParallelToolCalls":2,"tool_choice":{"type":"any"}}`})
	name := got["tools"].([]any)[0].(map[string]any)["name"].(string)
	want := parsed(t, `{"model":"m-1","max_tokens":10,"system":[{"type":"text","text":"be\n\nbrief"}],"messages":[{"role":"user","content":[{"type":"text","text":"go"}]}],"tools":[{"name":"`+name+`","description":"d","input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"any"}}`)
	if d := cmp.Diff(want, any(got)); d != "" {
		t.Errorf("body (-want +got):\n%s", d)
	}
	r, err := ask(t, jsonAnswer(whole("tool_use", `[{"type":"tool_use","id":"1","name":"`+name+`","input":{}}]`)), false, model.Request{Tools: []schema.Tool{{Name: "a.b"}}})
	if err != nil || r.Calls[0].Name != "a.b" {
		t.Errorf("the name came back as %+v, %v", r, err)
	}
}

func TestLastTurnWithoutTools(t *testing.T) {
	t.Parallel()
	msgs := history(&model.Response{Calls: []schema.RawCall{{ID: "a", Name: "x", Args: "{}"}}})
	got := sent(t, model.Request{Messages: msgs, Options: `{"tool_choice":{"type":"any"}}`})
	delete(got, "messages")
	want := parsed(t, `{"model":"m-1","max_tokens":4096,"tools":[{"name":"x","input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"none"}}`)
	if d := cmp.Diff(want, any(got)); d != "" {
		t.Errorf("body (-want +got):\n%s", d)
	}
}

func TestNew(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("ANTHROPIC_BASE_URL", "")
	if _, err := New(Config{Model: "m"}); !isKind(err, model.Auth) || !strings.Contains(err.Error(), "ANTHROPIC_API_KEY") {
		t.Errorf("no key: %v", err)
	}
	e := jsonAnswer(whole("end_turn", `[{"type":"text","text":"ok"}]`))
	at := start(t, e).at.URL
	t.Setenv("ANTHROPIC_BASE_URL", at)
	c, err := New(Config{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := c.Generate(context.Background(), &model.Request{}); err != nil || r.Text != "ok" || e.key+e.bearer != "" {
		t.Errorf("without a key: %+v, %v, key %q", r, err, e.key)
	}
}
