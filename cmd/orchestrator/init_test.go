package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/loop/agentfile"
)

func TestInit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(args ...string) harness.Result {
		return harness.Run(t, harness.Command{Program: program, Dir: dir, Args: append([]string{"init"}, args...)})
	}
	if r := run("my helper.yaml"); r.Code != 0 || !strings.Contains(r.Stdout, "run -f") {
		t.Fatalf("%+v", r)
	}
	path := filepath.Join(dir, "my helper.yaml")
	spec, err := agentfile.Load(path)
	if err != nil || spec.ID != "my-helper" {
		t.Errorf("id %q, %v", spec.ID, err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run("my helper.yaml"); r.Code != 2 || !strings.Contains(r.Stderr, "is there already") {
		t.Errorf("%+v", r)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
		t.Errorf("file holds %q, %v", text, err)
	}
	if r := run(); r.Code != 0 {
		t.Errorf("%+v", r)
	}
	if _, err := agentfile.Load(filepath.Join(dir, "agent.yaml")); err != nil {
		t.Error(err)
	}
}

func TestAgentID(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"agent.yaml": "agent", "a b.yml": "a-b", "x.y.yaml": "x.y", "日本.yaml": "agent", ".yaml": "agent", "dir/Ops_1.yaml": "Ops_1",
	} {
		if got := agentID(file); got != want {
			t.Errorf("agentID(%q) = %q, want %q", file, got, want)
		}
	}
}
