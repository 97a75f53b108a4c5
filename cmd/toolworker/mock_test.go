package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

const recorded = `{"id":"a","tools":[{"name":"look.up","description":"Looks up.","parameters":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}}],"messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"look.up","arguments":"{\"id\":\"1\"}"}},{"id":"c","type":"function","function":{"name":"look.up","arguments":"{\"id\":\"2\"}"}}]},{"role":"tool","tool_call_id":"c","content":"one"},{"role":"tool","tool_call_id":"c","content":"two"}]}
{"id":"b","tools":[{"name":"look.up","description":"","parameters":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}],"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"look.up","arguments":"{\"n\":1}"}}]},{"role":"tool","tool_call_id":"c","content":""}]}
`

func TestMockAnswersAsRecorded(t *testing.T) {
	t.Parallel()
	srv, b := connect(t)
	file := filepath.Join(t.TempDir(), "recorded.jsonl")
	if err := os.WriteFile(file, []byte(recorded), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		startWorker(t, srv, nil, "mock", file, "--delay", "0-5ms", "--fail", "50%", "--attempts", "40", "--seed", "7")
	}
	def := tool(t, b, "look.up")
	if !def.Idempotent || def.Queue != "mock" {
		t.Errorf("announced as %+v", def)
	}
	for name, c := range map[string]struct {
		agent       string
		turn, index int
		tool        string
		args        schema.JSONText
		want        string
		fails       schema.ErrorType
	}{
		"first":           {"a", 1, 0, "look.up", `{"id":"1"}`, "one", ""},
		"second":          {"a", 1, 1, "look.up", `{"id":"2"}`, "two", ""},
		"empty output":    {"b", 1, 0, "look.up", `{"n":1}`, "", ""},
		"own schema":      {"b", 1, 0, "look.up", `{"id":"1"}`, `"n"`, schema.InvalidArguments},
		"unknown agent":   {"c", 1, 0, "look.up", `{}`, `no transcript here has the id`, schema.ToolFailed},
		"past the end":    {"a", 2, 0, "look.up", `{"id":"1"}`, "has no output for call 0 of turn 2", schema.ToolFailed},
		"index too large": {"a", 1, 2, "look.up", `{"id":"1"}`, "has no output for call 2 of turn 1", schema.ToolFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := &schema.Call{
				Run: schema.NewID(), Turn: c.turn, Index: c.index, Tool: c.tool, Args: c.args, Agent: c.agent, Idempotent: true,
			}
			r, err := b.Dispatch(t.Context(), call, "mock", time.Minute)
			switch {
			case err != nil:
				t.Error(err)
			case c.fails == "" && (!r.OK || r.Output != c.want):
				t.Errorf("%+v, want %q", r, c.want)
			case c.fails != "" && (r.OK || r.Error.Type != c.fails || !strings.Contains(r.Error.Message, c.want)):
				t.Errorf("%+v, want %s with %q", r, c.fails, c.want)
			}
		})
	}
}
