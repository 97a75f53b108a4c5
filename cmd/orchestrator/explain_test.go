package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest/harness"
)

const explainedFile = `version: jetcrew/v1
id: clerk
model: openai/gpt-4o
tools:
  - read_file
  - {ref: list_files, approval: always, bind: {tenant: acme}}
  - {ref: bash, timeout: 5s}
  - no_such_tool
filters:
  - {name: no secrets, tools: [read_file], when: 'args.path == ".env"', block: not for you}
policy:
  autonomy: supervised
  rules:
    - {name: no writing, effects: [write], deny: true}
subagents: [{agent: helper}]
abortOn: [bash]
`

func TestExplainWithoutServer(t *testing.T) {
	t.Parallel()
	o := office{t.TempDir()}
	o.write(t, "agent.yaml", explainedFile)
	r := o.run(t, "explain")
	wantCode(t, r, 0)
	wantInOrder(t, r.Stdout,
		"agent clerk, model openai/gpt-4o", "as the file names it", "read_file", "runs, but see below", "list_files", "a person is asked",
		"subagent_helper", "agents", "Who is asked",
		"read_file", `no secrets: deny if args.path == ".env": not for you`, "no writing: deny if its effect is write",
		"list_files", "approval always: ask", "beside the arguments: tenant", "bash", "its failure ends the run",
		"On the way", "hooks", "filters", "authority", "policy", "approval", "bind", "limits", "handoff",
	)
}

// TestExplainWithWorkers: what live workers say of their tools answers what the file leaves open.
func TestExplainWithWorkers(t *testing.T) {
	t.Parallel()
	o := office{t.TempDir()}
	o.write(t, "agent.yaml", explainedFile)
	url := natsServer(t)
	worker := harness.Start(t, harness.Command{
		Program: program, Dir: o.dir, Args: []string{"worker", "serve", "--queue", "files", "--queue", "shell", "--nats", url},
	})
	b, err := bus.Connect(t.Context(), bus.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Select("read_file", "bash").Wait(t.Context(), 30*time.Second); err != nil {
		t.Fatal(err)
	}
	r := o.run(t, "explain", "--json", "--nats", url)
	wantCode(t, r, 0)
	worker.Signal(os.Interrupt)
	worker.Wait()
	var e explanation
	if err := json.Unmarshal([]byte(r.Stdout), &e); err != nil {
		t.Fatal(err)
	}
	if !e.Live || len(e.Missing) != 1 || e.Missing[0] != "no_such_tool" || len(e.Tools) != 4 {
		t.Errorf("%+v", e)
	}
	for _, tool := range e.Tools {
		want := map[string]string{"read_file": "allow", "list_files": "ask", "bash": "ask", "subagent_helper": "ask"}[tool.Name]
		if tool.Outcome != want || tool.Effect == "" || tool.Queue == "" {
			t.Errorf("%+v, want %s", tool, want)
		}
	}
}

func TestExplainRefusesWhatCheckRefuses(t *testing.T) {
	t.Parallel()
	o := office{t.TempDir()}
	o.write(t, "agent.yaml", wrongFile)
	r := o.run(t, "explain")
	wantCode(t, r, 2)
	if !strings.Contains(r.Stderr, "modell") {
		t.Error(r.Stderr)
	}
	r = o.run(t, "explain", "-f", "none.yaml")
	wantCode(t, r, 2)
	wantInOrder(t, r.Stderr, "none.yaml", "init")
}
