package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jetcrew/jetcrew/loop/agentfile"
)

const wrongFile = `version: jetcrew/v1
id: a
modell: openai/gpt-4o
model: openai/gpt-4o
tools: [{ref: bash, approval: ask}]
policy:
  rules:
    - {effects: [read, writa], deny: true}
`

func TestCheckReportsAllFiles(t *testing.T) {
	t.Parallel()
	o := office{t.TempDir()}
	o.write(t, "wrong.yaml", wrongFile)
	o.write(t, "agent.yaml", string(agentfile.Template("a")))
	r := o.run(t, "check", "wrong.yaml", "agent.yaml", "none.yaml")
	wantCode(t, r, 1)
	wantInOrder(t, r.Stdout,
		`wrong.yaml:3:1: error: unknown field "modell"; did you mean "model"?`, "jetcrew.field.unknown at $.modell", "    3 | modell:",
		"wrong.yaml:5:31: warning: approval ask", "jetcrew.tool.approval.notAsked at $.tools[0].approval",
		`wrong.yaml:8:24: error: effects: unknown value "writa"`, "jetcrew.policy.effect.unknown at $.policy.rules[0].effects[1]",
		"none.yaml: error: ", "jetcrew.file.unreadable", "3 files, 3 errors, 1 warning",
	)
}

func TestCheckJSON(t *testing.T) {
	t.Parallel()
	o := office{t.TempDir()}
	o.write(t, "wrong.yaml", wrongFile)
	r := o.run(t, "check", "--json", "wrong.yaml")
	wantCode(t, r, 1)
	var codes []string
	for line := range strings.Lines(r.Stdout) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.File != "wrong.yaml" || f.Line == 0 || f.Column == 0 || f.Excerpt == "" || f.Message == "" {
			t.Errorf("%s: %v", line, err)
		}
		codes = append(codes, f.Severity+" "+string(f.Code)+" "+f.Path)
	}
	if got := strings.Join(codes, "\n"); got != "error jetcrew.field.unknown $.modell\nwarning jetcrew.tool.approval.notAsked $.tools[0].approval\n"+
		"error jetcrew.policy.effect.unknown $.policy.rules[0].effects[1]" {
		t.Error(got)
	}
}

func TestCheckPasses(t *testing.T) {
	t.Parallel()
	o := office{t.TempDir()}
	o.write(t, "agent.yaml", "version: jetcrew/v1\nid: a\nmodel: openai/gpt-4o\ntools: [{ref: bash, approval: ask}]\n")
	r := o.run(t, "check") // a warning is no failure
	wantCode(t, r, 0)
	if !strings.Contains(r.Stdout, "agent.yaml:4:31: warning") || !strings.HasSuffix(r.Stdout, "1 file, 0 errors, 1 warning\n") {
		t.Error(r.Stdout)
	}
}

func TestCheckPrintsTheSchema(t *testing.T) {
	t.Parallel()
	r := orchestrator(t, "check", "--schema")
	wantCode(t, r, 0)
	want, err := os.ReadFile(filepath.Join("..", "..", "docs", "agent.schema.json"))
	if err != nil || r.Stdout != string(want) {
		t.Errorf("the schema is not that of docs/agent.schema.json (%v)", err)
	}
}

// TestCheckCompilesConditions: what CEL does not take is shown at its place within the condition.
func TestCheckCompilesConditions(t *testing.T) {
	t.Parallel()
	o := office{t.TempDir()}
	o.write(t, "agent.yaml", "version: jetcrew/v1\nid: a\nmodel: openai/gpt-4o\ntools: [bash]\nfilters:\n  - when: |\n      tool == 'x' &&\n        nobody == 1\n    block: x\npolicy: {presets: [unsafe]}\n")
	r := o.run(t, "check")
	wantCode(t, r, 1)
	wantInOrder(t, r.Stdout,
		"agent.yaml:8:9: error: ", "jetcrew.rules.condition at $.filters[0].when",
		"agent.yaml:10:20: error: ", "jetcrew.rules.unknown at $.policy.presets[0]", "1 file, 2 errors",
	)
}
