package openai

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

func TestA23UglyStreamsGiveTheCallsOfTheWholeAnswer(t *testing.T) {
	t.Parallel()
	want, err := ask(t, jsonAnswer(testdata(t, "two-calls.json")), false, model.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if len(want.Calls) != 2 || want.Finish != schema.FinishCalls || want.Usage != (schema.Usage{Input: 50, Output: 20, CacheRead: 10}) {
		t.Fatalf("whole answer: %+v", want)
	}
	for _, path := range streams(t, func(name string) bool { return !strings.HasPrefix(name, "ambiguous") }) {
		t.Run("A23 "+path, func(t *testing.T) {
			t.Parallel()
			got, err := ask(t, streamAnswer(testdata(t, path)), true, model.Request{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("streamed answer differs (-whole +stream):\n%s", d)
			}
		})
	}
}

func TestA23AmbiguousStreamsAreErrors(t *testing.T) {
	t.Parallel()
	for _, path := range streams(t, func(name string) bool { return strings.HasPrefix(name, "ambiguous") }) {
		t.Run("A23 "+path, func(t *testing.T) {
			t.Parallel()
			got, err := ask(t, streamAnswer(testdata(t, path)), true, model.Request{})
			var e *model.Error
			if !errors.As(err, &e) || e.Kind != model.Unavailable || !strings.Contains(e.Message, "ambiguous") {
				t.Errorf("got %+v, %v; want an error that says ambiguous", got, err)
			}
		})
	}
}

func streams(t *testing.T, want func(string) bool) (names []string) {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.sse")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		if want(filepath.Base(p)) {
			names = append(names, filepath.Base(p))
		}
	}
	if len(names) == 0 {
		t.Fatal("no streams in testdata")
	}
	return names
}

// sse makes a stream of chunks that each hold one delta, and an end.
func sse(finish string, deltas ...string) string {
	var b strings.Builder
	for _, d := range deltas {
		b.WriteString(`data: {"model":"m-1","choices":[{"index":0,"delta":` + d + "}]}\n\n")
	}
	if finish != "" {
		b.WriteString(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"` + finish + "\"}]}\n\n")
		b.WriteString("data: [DONE]\n\n")
	}
	return b.String()
}

func whole(finish, message string) string {
	return `{"model":"m-1","choices":[{"index":0,"message":` + message + `,"finish_reason":"` + finish + `"}]}`
}

func TestStreamAndWholeAreIdentical(t *testing.T) {
	t.Parallel()
	call := func(args string) string {
		return `{"tool_calls":[{"index":0,"id":"c1","function":{"name":"ping"` + args + `}}]}`
	}
	cases := []struct {
		name, finish, message string
		deltas                []string
		want                  model.Response
	}{
		{"A01 empty arguments", "tool_calls", call(`,"arguments":""`), []string{call(`,"arguments":""`)}, called("", schema.FinishCalls)},
		{"A01 no argument deltas", "tool_calls", call(``), []string{call(``)}, called("", schema.FinishCalls)},
		{"A01 blank arguments", "tool_calls", call(`,"arguments":"  \n"`), []string{call(``), `{"tool_calls":[{"index":0,"function":{"arguments":"  \n"}}]}`}, called("  \n", schema.FinishCalls)},
		{"A02 null arguments", "tool_calls", call(`,"arguments":null`), []string{call(`,"arguments":null`)}, called("", schema.FinishCalls)},
		{"A02 the text null", "tool_calls", call(`,"arguments":"null"`), []string{call(``), `{"tool_calls":[{"index":0,"function":{"arguments":"nu"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"ll"}}]}`}, called("null", schema.FinishCalls)},
		{"A03 array", "tool_calls", call(`,"arguments":"[\"a\",\"b\"]"`), []string{call(`,"arguments":"[\"a\","`), `{"tool_calls":[{"index":0,"function":{"arguments":"\"b\"]"}}]}`}, called(`["a","b"]`, schema.FinishCalls)},
		{"A03 bare string", "tool_calls", call(`,"arguments":"\"just text\""`), []string{call(`,"arguments":"\"just text\""`)}, called(`"just text"`, schema.FinishCalls)},
		{"A03 number", "tool_calls", call(`,"arguments":"42"`), []string{call(`,"arguments":"4"`), `{"tool_calls":[{"index":0,"function":{"arguments":"2"}}]}`}, called("42", schema.FinishCalls)},
		{"A03 arguments that are no string", "tool_calls", call(`,"arguments":{"a": 1}`), []string{call(`,"arguments":{"a": 1}`)}, called(`{"a":1}`, schema.FinishCalls)},
		{"A07 cut by the output limit", "length", call(`,"arguments":"{\"p\":\"ab"`), []string{call(`,"arguments":"{\"p\""`), `{"tool_calls":[{"index":0,"function":{"arguments":":\"ab"}}]}`}, called(`{"p":"ab`, schema.FinishLength)},
		{"A22 lone surrogate", "stop", `{"content":"a\ud83d b"}`, []string{`{"content":"a\ud83d"}`, `{"content":" b"}`}, told("a\uFFFD b", schema.FinishStop)},
		{"A22 surrogates in two chunks", "stop", `{"content":"\ud83d\ude42"}`, []string{`{"content":"\ud83d"}`, `{"content":"\ude42"}`}, told("🙂", schema.FinishStop)},
		{"calls though the endpoint says stop", "stop", call(`,"arguments":"{}"`), []string{call(`,"arguments":"{}"`)}, called("{}", schema.FinishCalls)},
		{"text in parts", "stop", `{"content":[{"type":"text","text":"ab"},{"type":"text","text":"c"}]}`, []string{`{"content":[{"type":"text","text":"ab"}]}`, `{"content":"c"}`}, told("abc", schema.FinishStop)},
		{"refusal", "stop", `{"content":null,"refusal":"I cannot"}`, []string{`{"refusal":"I "}`, `{"refusal":"cannot"}`}, told("I cannot", schema.FinishRefused)},
		{"content filter drops what it cut", "content_filter", `{"content":"so","tool_calls":[{"index":0,"id":"c1","function":{"name":"ping"}}]}`, []string{`{"content":"so"}`, call(``)}, told("so", schema.FinishRefused)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, stream := range []bool{false, true} {
				e := jsonAnswer(whole(c.finish, c.message))
				if stream {
					e = streamAnswer(sse(c.finish, c.deltas...))
				}
				got, err := ask(t, e, stream, model.Request{})
				if err != nil {
					t.Fatalf("stream %v: %v", stream, err)
				}
				if d := cmp.Diff(&c.want, got); d != "" {
					t.Errorf("stream %v (-want +got):\n%s", stream, d)
				}
			}
		})
	}
}

func called(args string, f schema.Finish) model.Response {
	return model.Response{Calls: []schema.RawCall{{ID: "c1", Name: "ping", Args: args}}, Finish: f, Model: "m-1"}
}

func told(s string, f schema.Finish) model.Response {
	return model.Response{Text: s, Finish: f, Model: "m-1"}
}

func TestA25AllCallsOfAnAnswer(t *testing.T) {
	t.Parallel()
	message := `{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"y","arguments":"{}"}},{"index":2,"id":"c","function":{"name":"x","arguments":"{}"}}]}`
	want := []schema.RawCall{{ID: "a", Name: "x", Args: "{}"}, {ID: "b", Name: "y", Args: "{}"}, {ID: "c", Name: "x", Args: "{}"}}
	for _, stream := range []bool{false, true} {
		e := jsonAnswer(whole("tool_calls", message))
		if stream {
			e = streamAnswer(sse("tool_calls", message))
		}
		got, err := ask(t, e, stream, model.Request{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got.Calls); d != "" {
			t.Errorf("A25 stream %v (-want +got):\n%s", stream, d)
		}
	}
}

func TestDeltas(t *testing.T) {
	t.Parallel()
	var text, thought strings.Builder
	req := model.Request{Delta: func(d model.Delta) { text.WriteString(d.Text); thought.WriteString(d.Reasoning) }}
	body := sse("stop", `{"role":"assistant","content":""}`, `{"reasoning_content":"let me "}`, `{"reasoning":"see"}`, `{"content":"caf\ud83d"}`, `{"content":"\ude42!"}`)
	got, err := ask(t, streamAnswer(body), true, req)
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != "caf🙂!" || thought.String() != "let me see" || got.Text != "caf🙂!" {
		t.Errorf("text %q, reasoning %q, answer %q", text.String(), thought.String(), got.Text)
	}
}

func TestEndpointThatDoesNotStream(t *testing.T) {
	t.Parallel()
	var shown string
	got, err := ask(t, jsonAnswer(whole("stop", `{"content":"hi"}`)), true, model.Request{Delta: func(d model.Delta) { shown += d.Text }})
	if err != nil || got.Text != "hi" || shown != "hi" {
		t.Errorf("got %+v, %v; shown %q", got, err, shown)
	}
}

func TestStreamWithoutFinishReason(t *testing.T) {
	t.Parallel()
	got, err := ask(t, streamAnswer(sse("", `{"content":"hi"}`)+"data: [DONE]\n\n"), true, model.Request{})
	if err != nil || got.Finish != schema.FinishStop {
		t.Errorf("got %+v, %v", got, err)
	}
}
