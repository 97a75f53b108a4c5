package schema

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"
)

// payloads has one payload of each type with every field set; a new payload type belongs in here.
func payloads() map[string]Encodable {
	const run = "01890a5d-ac96-774b-bcce-b302099a8057"
	principal := Principal{ID: "ada", Tenant: "acme", Scopes: []string{"files:read", "shell"}}
	decision := Decision{Action: ActionInvalid, Rule: "structure", Text: "arguments must be an object, got array", Type: InvalidArguments}
	return map[string]Encodable{
		"call": &Call{
			Run: run, Turn: 3, Index: 1, Label: "call_1", Tool: "read_file", As: "read", Source: "github", Args: `{"path":"go.mod"}`,
			Bound: `{"root":"/srv"}`, Agent: "helper", Principal: principal, Effect: EffectRead, Idempotent: true, TimeoutMS: 30_000,
			Digest: Digest(nil), Depth: 1, Lineage: []string{"parent"}, Budget: Budget{Steps: 5, Tokens: 100_000, Cost: 0.25},
			Previous: "earlier",
		},
		"call_minimal": &Call{Run: run, Tool: "ping", Args: "{}"},
		"result": &Result{
			Run: run, Turn: 3, Index: 1, Output: `TOOL_ERROR: {"errorType":"Timeout"}`, Error: &Error{Type: Timeout, Message: "30 s"},
			Aborts: true, Blob: "ab", Size: 300_000, Worker: "w-1", Delivery: 2, QueuedMS: 5, StartedMS: 1_790_000_000_000, EndedMS: 1_790_000_000_123,
			Spent: Spent{Steps: 4, Usage: Usage{Input: 10, Output: 20, CacheRead: 3, CacheWrite: 4}, Cost: 0.125, Attempts: 2},
		},
		"result_minimal": &Result{Run: run, Turn: 1, OK: true, Output: "done"},
		"turn": &Turn{
			N: 3, Own: 1, Say: 2, Fold: 1, Model: "gpt-x", Text: "I look.", Items: &Items{Provider: "anthropic", Data: []byte(`[{"type":"thinking"}]`)},
			Finish: FinishCalls, Usage: Usage{Input: 10, Output: 20, CacheRead: 3, CacheWrite: 4}, StartedMS: 1_790_000_000_000, EndedMS: 1_790_000_000_500,
			Calls: []TurnCall{
				{
					Label: "a", Tool: "read_file", Target: "read.file", Source: "github", Raw: `{ "path":"go.mod"}`, Args: `{"path":"go.mod"}`, Bound: `{"root":"/srv"}`, Queue: "files", Effect: EffectRead,
					Idempotent: true, TimeoutMS: 1000, WithinMS: 2000, Digest: Digest(nil), Notes: []string{NoteUnwrapped}, Aborts: true, Budget: Budget{Steps: 5, Tokens: 1000, Cost: 0.5}, Decision: Decision{Action: ActionAllow},
				},
				{Label: "b", Tool: "x", Raw: "[]", Args: "{}", Queue: QueueNone, Decision: decision},
			},
		},
		"open": &Open{
			Kind: RunAgent, Agent: &AgentSpec{
				ID: "helper", Name: "Helper", Model: ModelSpec{Provider: "openai", Name: "gpt-x", Options: `{"temperature":0}`, ContextWindow: 200_000, Price: Price{Input: 2.5, Output: 10}},
				Instructions: "Help.", Tools: []string{"read_*"}, Limits: Limits{MaxSteps: 20, WallClockMS: 300_000, MaxTokens: 1_000_000, MaxCost: 2.5}, Parallel: Parallel{Calls: true, Max: 4, TimeoutMS: 60_000},
				Compaction: &Compaction{Strategy: CompactSummary, ContextRatio: 0.5, MaxTurns: 40, Preserve: 6}, Governance: governance(),
			},
			Chain: "cd", Keep: true, Principal: principal, Parent: &CallRef{Run: "parent", Turn: 1, Index: 2, Label: "c"}, Depth: 1, Lineage: []string{"parent"}, Budget: Budget{Steps: 5, Tokens: 1000, Cost: 0.5},
			Handoff: &Handover{Name: "subagent_helper", Attempt: 2, Retries: 1, TimeoutMS: 60_000, Fallback: "ask a person", Spent: Spent{Steps: 1, Attempts: 1}, Session: SessionReuse, Previous: "earlier"},
			Before: []Message{
				{Role: RoleUser, Text: "Look."},
				{Role: RoleAssistant, Calls: []MessageCall{{Label: "a", Name: "read_file", Args: "{}"}}, Items: &Items{Provider: "anthropic", Data: []byte("[]")}},
				{Role: RoleTool, Text: "gone", Label: "a", Name: "read_file", Error: true},
			},
			DeadlineMS: 1_790_000_000_000, Trace: map[string]string{"traceparent": "00-1-2-01"}, AtMS: 1_790_000_000_000,
		},
		"open_minimal": &Open{Kind: RunCall},
		"ctl":          &Ctl{Act: CtlStop, Instance: "o-1", Seq: 7, Why: "user", AtMS: 1_790_000_000_000},
		"say":          &Say{Role: RoleUser, Text: "Grüße", Source: "mail-1", AtMS: 1_790_000_000_000},
		"wake":         &Wake{Run: "r-1", Wake: true},
		"begin":        &Begin{Instance: "w-1", Delivery: 1, Seq: 1 << 40, DeadlineMS: 1_790_000_000_000},
		"back":         &Back{Instance: "w-1", Reason: "tool unknown here"},
		"sent":         &Sent{Calls: []SentCall{{Index: 0, Seq: 8, DeadlineMS: 1_790_000_000_000}, {Index: 1, Seq: 9, DeadlineMS: 1_790_000_000_001}}},
		"ask": &Ask{
			Tool: "gh_issue", Target: "issue", Source: "github", Queue: "mcp-github", Args: Digest([]byte("{}")), Bound: Digest([]byte("{}")), Schema: Digest(nil),
			Edited: `{"n":1}`, Rule: "policy.rules[0]", Text: "it writes", ExpiresMS: 1_790_000_000_000, AtMS: 1_780_000_000_000,
		},
		"verdict": &Verdict{Decision: VerdictApprove, Digest: Digest(nil), Args: `{"n":2}`, By: "ada", Why: "looks right", AtMS: 1_780_000_000_001},
		"answer":  &Answer{Text: "It is done.", Reason: ReasonMaxSteps, Error: "limit", Turn: 3, Say: 2, Usage: Usage{Input: 1, Output: 2}, AtMS: 1_790_000_000_000},
		"close":   &Close{State: string(ReasonDone), Turns: 3, Calls: 4, Usage: Usage{Input: 1, Output: 2}, AtMS: 1_790_000_000_000},
		"fold": &Fold{
			N: 12, Own: 2, Strategy: CompactSummary, Trigger: TriggerRatio, Turns: 16, Say: 3, Text: "So far: done.", Model: "gpt-x",
			Usage: Usage{Input: 9000, Output: 300}, AtMS: 1_790_000_000_000,
		},
		"view": &View{Text: "[redacted]"},
	}
}

func governance() *Governance {
	h := &Handoff{Allowed: []string{"subagent_a"}, Denied: []string{"subagent_b"}, MaxDepth: 2, MaxRetries: 1, TimeoutMS: 60_000, OnDenied: HandoffFallback, OnError: HandoffFail, Fallback: "do it yourself"}
	return &Governance{
		Tools:   []ToolSetting{{Ref: "read_*", Approval: ApproveSafe, Once: true, TimeoutMS: 1000, Bind: `{"tenant":"${principal.tenant}"}`}},
		Filters: []FilterRule{{Name: "f", Tools: []string{"bash"}, When: "true", Action: ActionGuide, Text: "no."}},
		Policy: &Policy{
			Presets: []string{"safe"}, Default: ActionAllow, Autonomy: AutonomyCautious, ExpiresMS: 60_000,
			Rules: []PolicyRule{{Name: "p", Tools: []string{"bash"}, Effects: []string{EffectWrite}, Environments: []string{"production"}, When: "true", Action: ActionAsk, Risk: RiskHigh, Text: "careful"}},
		},
		Environment: "production", Authority: []string{"tool:*"}, AbortOn: []string{"pay"},
		Subagents: []Subagent{{Agent: "a", Name: "subagent_a", Description: "Helps.", Session: SessionNew, Handoff: h}}, Handoff: h,
		Above: []Above{{Agent: "boss", Environment: "production", Policy: &Policy{Autonomy: AutonomySupervised}, Tools: []ToolSetting{{Ref: "bash", Approval: ApproveAlways}}}},
	}
}

// empty returns a new payload of v's type.
func empty(v Encodable) Encodable {
	return reflect.New(reflect.TypeOf(v).Elem()).Interface().(Encodable)
}

func TestFixtures(t *testing.T) {
	t.Parallel()
	for name, v := range payloads() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := Encode(v)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".msgpack.hex", wrapped(hex.EncodeToString(data)))
			text, err := json.MarshalIndent(v, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".json", string(text)+"\n")
			for form, bytes := range map[string][]byte{"msgpack": data, "json": text} {
				got := empty(v)
				if err := Decode(bytes, got); err != nil {
					t.Fatalf("%s: %v", form, err)
				}
				if diff := cmp.Diff(v, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", form, diff)
				}
			}
		})
	}
}

// wrapped breaks hex text into lines that a review can read.
func wrapped(s string) string {
	var b strings.Builder
	for len(s) > 64 {
		b.WriteString(s[:64] + "\n")
		s = s[64:]
	}
	return b.String() + s + "\n"
}

// The codec by hand writes the bytes that reflection would write, whatever the fields hold.
func TestPackedLikeReflected(t *testing.T) {
	t.Parallel()
	type plainCall Call
	type plainResult Result
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.MakeCustom[Call](small).Draw(t, "call")
		r := rapid.MakeCustom[Result](small).Draw(t, "result")
		want := reflected(t, (*plainCall)(&c))
		if got := c.pack(); !bytes.Equal(got, want) {
			t.Fatalf("call:\ngot  %x\nwant %x", got, want)
		}
		if got, want := r.pack(), reflected(t, (*plainResult)(&r)); !bytes.Equal(got, want) {
			t.Fatalf("result:\ngot  %x\nwant %x", got, want)
		}
		turn := rapid.MakeCustom[Turn](small).Draw(t, "turn")
		type plainTurn Turn
		if got, want := turn.pack(), reflected(t, (*plainTurn)(&turn)); !bytes.Equal(got, want) {
			t.Fatalf("turn:\ngot  %x\nwant %x", got, want)
		}
		var c2 Call
		var r2 Result
		if err := errors.Join(c2.unpack(c.pack()), r2.unpack(r.pack())); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, c2, cmpopts.EquateEmpty()) + cmp.Diff(r, r2, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("round trip (-want +got):\n%s", diff)
		}
	})
}

// small keeps the generated numbers and texts around the borders between the widths on the wire.
var small = rapid.MakeConfig{Kinds: map[reflect.Kind]*rapid.Generator[any]{
	reflect.Int64:  rapid.SampledFrom([]int64{0, 0, 1, -1, -33, 127, 128, 255, 256, 65536, 1 << 40}).AsAny(),
	reflect.Int:    rapid.SampledFrom([]int{0, 0, 1, -1, -33, 127, 128, 255, 256, 65536, 1 << 40}).AsAny(),
	reflect.Uint64: rapid.SampledFrom([]uint64{0, 0, 1, 128, 256, 1 << 40, 1<<64 - 1}).AsAny(),
	reflect.String: rapid.SampledFrom([]string{"", "", "x", strings.Repeat("é", 16), strings.Repeat("x", 255), strings.Repeat("y", 256), strings.Repeat("z", 70_000)}).AsAny(),
}}

func reflected(t *rapid.T, v any) []byte {
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	enc.UseCompactInts(true)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestNestedStructsAreOmitted(t *testing.T) {
	t.Parallel()
	for _, v := range []Encodable{&Call{Run: "r", Tool: "t", Args: "{}"}, &Open{Kind: RunCall}} {
		data, err := Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"principal", "budget", "agent", "parent"} {
			if bytes.Contains(data, []byte(key)) || bytes.Contains(text, []byte(key)) {
				t.Errorf("%T: %s is written though empty: %q, %s", v, key, data, text)
			}
		}
	}
}

func TestDecodeCall(t *testing.T) {
	t.Parallel()
	const head = `"run":"r","turn":1,"index":0,"tool":"ping"`
	for _, c := range []struct{ name, in, want, err string }{
		{"A01 args absent", `{` + head + `}`, `{}`, ""},
		{"A02 args null", `{` + head + `,"args":null}`, `{}`, ""},
		{"args as an object", `{` + head + `,"args":{"a": [1, "é"]}}`, `{"a":[1,"é"]}`, ""},
		{"args as a string", `{` + head + `,"args":"{\"a\": 1.50}"}`, `{"a": 1.50}`, ""},
		{"A05 args doubly encoded stay so", `{` + head + `,"args":"\"{}\""}`, `"{}"`, ""},
		{"unknown keys", ` {` + head + `,"later":{"x":[1]}}`, `{}`, ""},
		{"turn 0 starts a run", `{"run":"r","turn":0,"index":0,"tool":"helper"}`, `{}`, ""},
		{"run missing", `{"turn":1,"index":0,"tool":"x"}`, "", `call: bad payload: run ""`},
		{"run malformed", `{"run":"a.b","turn":1,"index":0,"tool":"x"}`, "", `call: bad payload: run "a.b": want 1 to 64 of`},
		{"turn that no fact can name", `{"run":"r","turn":2147483648,"index":0,"tool":"x"}`, "", "turn or index is above 2147483647"},
		{"index that no fact can name", `{"run":"r","turn":1,"index":9223372036854775807,"tool":"x"}`, "", "turn or index is above 2147483647"},
		{"turn missing", `{"run":"r","index":0,"tool":"x"}`, "", "turn is missing or negative"},
		{"turn null", `{"run":"r","turn":null,"index":0,"tool":"x"}`, "", "turn is missing or negative"},
		{"index missing", `{"run":"r","turn":1,"tool":"x"}`, "", "index is missing or negative"},
		{"index negative", `{"run":"r","turn":1,"index":-2,"tool":"x"}`, "", "index is missing or negative"},
		{"tool missing", `{"run":"r","turn":1,"index":0}`, "", "tool is missing"},
		{"previous is a run", `{` + head + `,"previous":"p-1"}`, `{}`, ""},
		{"previous that means all runs", `{` + head + `,"previous":"*"}`, "", `call: bad payload: previous "*": want the id of a run`},
		{"lineage that means all runs", `{` + head + `,"lineage":["a","*"]}`, "", `call: bad payload: lineage "*": want ids of runs`},
		{"a later version", `{"v":2,` + head + `}`, "", "version 2, this program reads 1"},
		{"a key twice", `{` + head + `,"tool":"other"}`, "", `the key "tool" occurs a second time`},
		{"cut", `{` + head, "", "the text ends"},
		{"wrong type", `{"run":5,"turn":1,"index":0,"tool":"x"}`, "", "call: bad payload"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			call, err := DecodeCall([]byte(c.in))
			if c.err != "" {
				if err == nil || !errors.Is(err, ErrPayload) || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || string(call.Args) != c.want {
				t.Errorf("got %+v, %v", call, err)
			}
		})
	}
}

func TestDecodeCallMsgpackNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	full := map[string]any{"run": "r", "turn": 1, "index": 0, "tool": "ping"}
	for _, key := range []string{"run", "turn", "index", "tool"} {
		for _, null := range []bool{false, true} {
			part := make(map[string]any)
			for k, v := range full {
				if k != key {
					part[k] = v
				} else if null {
					part[k] = nil
				}
			}
			data, err := msgpack.Marshal(part)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := DecodeCall(data); err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("without %s (null %v): %v", key, null, err)
			}
		}
	}
	data, _ := msgpack.Marshal(full)
	if c, err := DecodeCall(data); err != nil || c.Args != "{}" {
		t.Errorf("got %+v, %v", c, err)
	}
}

// A worker in another language may write wider integers, binary for text, and whole numbers for decimals.
func TestDecodeForeignForms(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	if err := enc.Encode(map[string]any{
		"run": []byte("r"), "turn": uint64(1), "index": int64(0), "tool": "ping", "timeout_ms": uint8(200), "idempotent": nil,
		"budget": map[string]any{"cost": 2, "steps": int64(3)}, "principal": nil, "lineage": []string{"a", "b"}, "x": map[string]any{"y": []int{1}},
	}); err != nil {
		t.Fatal(err)
	}
	got, err := DecodeCall(buf.Bytes())
	want := &Call{Run: "r", Turn: 1, Tool: "ping", Args: "{}", TimeoutMS: 200, Budget: Budget{Cost: 2, Steps: 3}, Lineage: []string{"a", "b"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestA22DecodeResultCleansText(t *testing.T) {
	t.Parallel()
	r := Result{Run: "r", Output: "a\xff\xfeb\xed\xa0\xbd", Error: &Error{Type: ToolFailed, Message: "\xc3"}}
	data, err := Encode(&r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeResult(data)
	if err != nil || got.Output != "a\uFFFDb\uFFFD" || got.Error.Message != "\uFFFD" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := DecodeResult([]byte("x")); !errors.Is(err, ErrPayload) {
		t.Errorf("got %v", err)
	}
}

// Some fixture sets each field: a field added to a payload must be added there, or nothing holds its wire form.
func TestFixturesSetEveryField(t *testing.T) {
	t.Parallel()
	set := make(map[string]bool)
	for _, v := range payloads() {
		visit(reflect.ValueOf(v), set)
	}
	for field, ok := range set {
		if !ok && !strings.HasSuffix(field, ".Payload") && field != "Payload.V" {
			t.Errorf("%s is nowhere set", field)
		}
	}
}

// visit notes for each field of a struct, as Type.Field, whether some value of it is set.
func visit(v reflect.Value, set map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		visit(v.Elem(), set)
	case reflect.Slice:
		for i := range v.Len() {
			visit(v.Index(i), set)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Name() + "." + v.Type().Field(i).Name
			set[name] = set[name] || !v.Field(i).IsZero()
			visit(v.Field(i), set)
		}
	}
}

// A JSON payload of a wrong type is told of without the names of Go types.
func TestDecodeJSONNamesNoTypes(t *testing.T) {
	t.Parallel()
	err := Decode([]byte(`{"v":1,"kind":"run","agent":"x"}`), new(Open))
	if !errors.Is(err, ErrPayload) || strings.Contains(err.Error(), "schema.") || strings.Contains(err.Error(), "struct") || !strings.Contains(err.Error(), `"agent"`) {
		t.Error(err)
	}
	err = Decode([]byte("\x81\xa5agent\xa1x"), new(Open))
	if !errors.Is(err, ErrPayload) || strings.Contains(err.Error(), "schema.") {
		t.Error(err)
	}
}
