package anthropic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

func isKind(err error, k model.Kind) bool {
	var e *model.Error
	return errors.As(err, &e) && e.Kind == k
}

func TestStreamAndWholeAreIdentical(t *testing.T) {
	t.Parallel()
	want, err := ask(t, jsonAnswer(testdata(t, "thinking.json")), false, model.Request{})
	if err != nil {
		t.Fatal(err)
	}
	var shown, thought strings.Builder
	got, err := ask(t, streamAnswer(testdata(t, "thinking.sse")), true, model.Request{Delta: func(d model.Delta) { shown.WriteString(d.Text); thought.WriteString(d.Reasoning) }})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("answers (-whole +stream):\n%s", d)
	}
	calls := []schema.RawCall{{ID: "toolu_a", Name: "grep", Args: `{"pattern":"café 🙂","n":1.50}`}, {ID: "toolu_b", Name: "ping", Args: "{}"}}
	if d := cmp.Diff(calls, got.Calls); d != "" {
		t.Errorf("A01 A25 calls (-want +got):\n%s", d)
	}
	if got.Usage != (schema.Usage{Input: 17, Output: 30, CacheRead: 5, CacheWrite: 2}) || got.Finish != schema.FinishCalls || got.Text != "I look. And read." {
		t.Errorf("answer %+v", got)
	}
	if shown.String() != got.Text || thought.String() != "Let me see: caféand then" {
		t.Errorf("shown %q, reasoning %q", shown.String(), thought.String())
	}
}

const head = `{"type":"message_start","message":{"model":"m-1","content":[]}}`

func opened(i int, b string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, b)
}

func delta(i int, kind, field, json string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"%s","%s":%s}}`, i, kind, field, json)
}

func input(i int, json string) string { return delta(i, "input_json_delta", "partial_json", json) }

// sse makes a stream; with a stop reason it has an end.
func sse(stop string, events ...string) string {
	var b strings.Builder
	if stop != "" {
		events = append(events, `{"type":"message_delta","delta":{"stop_reason":"`+stop+`"}}`, `{"type":"message_stop"}`)
	}
	for _, e := range append([]string{head}, events...) {
		b.WriteString("event: x\ndata: " + e + "\n\n")
	}
	return b.String()
}

func whole(stop, content string) string {
	return `{"type":"message","model":"m-1","content":` + content + `,"stop_reason":"` + stop + `"}`
}

func TestArguments(t *testing.T) {
	t.Parallel()
	use := func(in string) string { return `{"type":"tool_use","id":"a","name":"ping","input":` + in + `}` }
	one := func(args string, f schema.Finish) model.Response {
		return model.Response{Calls: []schema.RawCall{{ID: "a", Name: "ping", Args: args}}, Finish: f, Model: "m-1"}
	}
	cases := []struct {
		name, stop, whole string
		events            []string
		want              model.Response
	}{
		{"A01 no argument deltas", "tool_use", use("{}"), []string{opened(0, use("{}"))}, one("{}", schema.FinishCalls)},
		{"A01 empty and blank deltas", "tool_use", use("{}"), []string{opened(0, use("{}")), input(0, `""`), input(0, `"  \n"`)}, one("{}", schema.FinishCalls)},
		{"A02 null", "tool_use", use("null"), []string{opened(0, use("null"))}, one("{}", schema.FinishCalls)},
		{"A03 array", "tool_use", use(`["a", "b"]`), []string{opened(0, use("{}")), input(0, `"[\"a\","`), input(0, `" \"b\"]"`)}, one(`["a","b"]`, schema.FinishCalls)},
		{"A23 snapshots", "tool_use", use(`{"a":1,"b":2}`), []string{opened(0, use("{}")), input(0, `"{\"a\":1"`), input(0, `"{\"a\":1,\"b\":2}"`)}, one(`{"a":1,"b":2}`, schema.FinishCalls)},
		{"A23 whole input at the start", "tool_use", use(`{"a":1}`), []string{opened(0, use(`{"a":1}`))}, one(`{"a":1}`, schema.FinishCalls)},
		{"A23 inside an escape and a character", "tool_use", use(`{"a":"\u00e9é"}`), []string{opened(0, use("{}")), input(0, `"{\"a\":\"\\u00"`), input(0, "\"e9\xc3\""), input(0, "\"\xa9\\\"}\"")}, one(`{"a":"\u00e9é"}`, schema.FinishCalls)},
		{"A22 lone surrogate in text", "end_turn", `{"type":"text","text":"a\ud83d"}`, []string{opened(0, `{"type":"text","text":""}`), delta(0, "text_delta", "text", `"a\ud83d"`)}, model.Response{Text: "a\uFFFD", Finish: schema.FinishStop, Model: "m-1"}},
		{"A07 cut by the output limit", "max_tokens", use(`{"a":1}`), []string{opened(0, use("{}")), input(0, `"{\"a\":1}"`)}, one(`{"a":1}`, schema.FinishLength)},
		{"thinking that was cut is not kept", "max_tokens", `{"type":"thinking","thinking":"so"}`, []string{opened(0, `{"type":"thinking","thinking":""}`), delta(0, "thinking_delta", "thinking", `"so"`)}, model.Response{Finish: schema.FinishLength, Model: "m-1"}},
		{"refusal drops what it cut", "refusal", use("{}"), []string{opened(0, use("{}"))}, model.Response{Finish: schema.FinishRefused, Model: "m-1"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, stream := range []bool{false, true} {
				e := jsonAnswer(whole(c.stop, "["+c.whole+"]"))
				if stream {
					e = streamAnswer(sse(c.stop, c.events...))
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

func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	use := `{"type":"tool_use","id":"a","name":"ping","input":{}}`
	cases := []struct {
		name, body string
		want       model.Kind
		says       string
	}{
		{"A23 two blocks with one index", sse("tool_use", opened(0, use), opened(0, use), input(0, `"{}"`)), model.Unavailable, "ambiguous"},
		{"A23 delta without block", sse("tool_use", input(3, `"{}"`)), model.Unavailable, "no block"},
		{"A23 block without index", sse("tool_use", `{"type":"content_block_start","content_block":{}}`), model.Unavailable, "no index"},
		{"A07 cut within a call", sse("", opened(0, use), input(0, `"{\"a\""`)), model.Unavailable, "ended before"},
		{"empty", "", model.Unavailable, "no message"},
		{"overloaded", sse("", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), model.Unavailable, "Overloaded"},
		{"rate limit", sse("", `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`), model.RateLimited, "slow"},
		{"not JSON", sse("", `{oops`), model.Unavailable, "not JSON"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := ask(t, streamAnswer(c.body), true, model.Request{})
			if !isKind(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	body := func(typ, msg string) string {
		return `{"type":"error","error":{"type":"` + typ + `","message":"` + msg + `"}}`
	}
	cases := []struct {
		name   string
		status int
		body   string
		want   model.Kind
		says   string
	}{
		{"bad key", 401, body("authentication_error", "invalid x-api-key "+testKey), model.Auth, "ANTHROPIC_API_KEY"},
		{"no credit", 400, body("invalid_request_error", "Your credit balance is too low to access the API"), model.Auth, "credit"},
		{"rate limit", 429, body("rate_limit_error", "slow"), model.RateLimited, "rate limit"},
		{"overloaded", 529, body("overloaded_error", "Overloaded"), model.Unavailable, "Overloaded"},
		{"overflow", 400, body("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), model.Overflow, "larger"},
		{"too large", 413, body("request_too_large", "x"), model.Overflow, "larger"},
		{"policy", 400, body("invalid_request_error", "Output blocked by content filtering policy"), model.Refused, "refused"},
		{"bad request", 400, body("invalid_request_error", "max_tokens: too small"), model.BadRequest, "max_tokens"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := &endpoint{status: c.status, header: map[string]string{"Content-Type": "application/json", "Retry-After": "3"}, body: []byte(c.body)}
			_, err := ask(t, e, false, model.Request{})
			var m *model.Error
			if !errors.As(err, &m) || m.Kind != c.want || m.Status != c.status || m.RetryAfter.Seconds() != 3 {
				t.Fatalf("got %+v", err)
			}
			if !strings.Contains(m.Message, c.says) || strings.Contains(err.Error(), testKey) {
				t.Errorf("message %q", m.Message)
			}
		})
	}
}

// TestD15NoRetryInTheSDK: the loop has the one place where a request is asked again.
func TestD15NoRetryInTheSDK(t *testing.T) {
	t.Parallel()
	n := 0
	c := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	_, err := c.Generate(context.Background(), &model.Request{Messages: []schema.Message{{Role: schema.RoleUser, Text: "go"}}})
	if !isKind(err, model.Unavailable) || n != 1 {
		t.Errorf("%d requests, %v", n, err)
	}
}
