package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// recorded is a transcript of one call and the answer after it.
func recorded(id, user, tool, args string) string {
	return fmt.Sprintf(`{"id":%q,"tools":[],"messages":[{"role":"user","content":%q},{"role":"assistant","content":"","tool_calls":[`+
		`{"id":"c","type":"function","function":{"name":%q,"arguments":%q}}]},{"role":"tool","tool_call_id":"c","content":"x"},{"role":"assistant","content":"that was it"}]}`+"\n",
		id, user, tool, args)
}

// TestD22DeniedToTheSubagentToo: an agent that may not read a file has nobody read it on its behalf, whatever the file of the
// sub-agent says.
func TestD22DeniedToTheSubagentToo(t *testing.T) {
	t.Parallel()
	o := office{t.TempDir()}
	o.write(t, "note.txt", "buy milk\n")
	o.write(t, "boss.jsonl", recorded("boss", "go", "subagent_aide", `{"task":"read it"}`))
	o.write(t, "aide.jsonl", recorded("aide", "read it", "read_file", `{"path":"note.txt"}`))
	o.write(t, "boss.yaml", `version: jetcrew/v1
id: boss
model: replay/boss.jsonl
subagents: [{agent: aide}]
policy:
  rules: [{name: no notes, when: '"path" in args && args.path == "note.txt"', deny: notes are private}]
`)
	o.write(t, "aide.yaml", `version: jetcrew/v1
id: aide
model: replay/aide.jsonl
tools: [read_file]
policy:
  rules: [{name: all, allow: true}]
`)
	for name, want := range map[string][]string{
		"boss.yaml": {"deny boss: no notes", "Denied: DENIED: notes are private", "answer.1"},
		"aide.yaml": {"queue files", "read_file ok", "buy milk", "answer.1"}, // by itself it may
	} {
		task, args := "go", []string{"--also", "aide.yaml"}
		if name == "aide.yaml" {
			task, args = "read it", nil
		}
		data := strings.TrimSuffix(name, ".yaml")
		wantCode(t, o.run(t, append([]string{"run", "-f", name, "--data", data, task}, args...)...), 0)
		var run string
		for line := range strings.Lines(o.run(t, "runs", "list", "--json", "--data", data).Stdout) {
			var l listedRun
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if l.Agent == "aide" {
				run = l.Run
			}
		}
		wantInOrder(t, o.run(t, "runs", "watch", run, "--data", data).Stdout, append([]string{"agent aide"}, want...)...)
	}
}
