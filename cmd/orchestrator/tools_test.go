package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/schema"
)

func TestToolsList(t *testing.T) {
	t.Parallel()
	r := orchestrator(t, "tools", "list")
	if r.Code != 0 || r.Stderr != "" {
		t.Fatalf("%+v", r)
	}
	for _, want := range []string{"QUEUE", "read_file", "bash", "destructive"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("output lacks %q:\n%s", want, r.Stdout)
		}
	}
	r = orchestrator(t, "tools", "list", "--json")
	if r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	for line := range strings.Lines(r.Stdout) {
		var l listedTool
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Name == "" || l.Workers != 1 || len(l.Parameters) == 0 {
			t.Errorf("%s: %+v, %v", line, l, err)
		}
	}
}

// TestToolsListSaysLimits: of a tool that is limited over the whole fleet the list says so.
func TestToolsListSaysLimits(t *testing.T) {
	t.Parallel()
	url := natsServer(t)
	w := harness.Start(t, harness.Command{Program: program, Args: []string{"worker", "serve", "--nats", url, "--queue", "shell=4", "--limit", "bash=2"}})
	w.Await("shell-bash")
	r := orchestrator(t, "tools", "list", "--nats", url)
	wantCode(t, r, 0)
	wantInOrder(t, r.Stdout, "shell-bash", "bash", "2, at most 2")
}

// TestToolsCallWhileALimitIsRolledOut: while some workers limit a tool and others do not, the call goes where the limit holds.
func TestToolsCallWhileALimitIsRolledOut(t *testing.T) {
	t.Parallel()
	url := natsServer(t)
	limited := harness.Start(t, harness.Command{Program: program, Args: []string{"worker", "serve", "--nats", url, "--queue", "shell=4", "--limit", "bash=2"}})
	limited.Await("shell-bash")
	other := harness.Start(t, harness.Command{Program: program, Args: []string{"worker", "serve", "--nats", url, "--queue", "shell=4"}})
	other.Await("queue shell")
	wantCode(t, orchestrator(t, "tools", "call", "bash", `{"command":"true"}`, "--nats", url), 0)
}

func TestToolsCall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args        []string
		code        int
		out, errOut string
	}{
		"output":            {[]string{"read_file", `{"path":"hello.txt"}`}, 0, "hello", ""},
		"no arguments":      {[]string{"list_files"}, 0, "hello.txt", ""},
		"with its queue":    {[]string{"list_files", "--queue", "files"}, 0, "hello.txt", ""},
		"queue in the name": {[]string{"files/list_files"}, 0, "hello.txt", ""},
		"tool fails":        {[]string{"bash", `{"command":"exit 3"}`}, 1, "", "exit status 3"},
		"times out":         {[]string{"bash", `{"command":"sleep 60"}`, "--timeout", "300ms"}, 1, "", `"errorType":"Timeout"`},
		"bad arguments":     {[]string{"read_file", `{"file":"hello.txt"}`}, 2, "", `missing property "path"`},
		"not JSON":          {[]string{"read_file", `hello.txt`}, 2, "", "arguments are not valid JSON"},
		"unknown":           {[]string{"readfile", "--wait", "1s"}, 1, "", `"read_file"`},
		"many":              {[]string{"*_file"}, 1, "", "names 2 tools"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := harness.Run(t, harness.Command{Program: program, Dir: dir, Args: append([]string{"tools", "call"}, c.args...)})
			if r.Code != c.code || !strings.Contains(r.Stdout, c.out) || !strings.Contains(r.Stderr, c.errOut) {
				t.Errorf("%+v, want code %d, %q and %q", r, c.code, c.out, c.errOut)
			}
		})
	}
}

func TestToolsCallJSON(t *testing.T) {
	t.Parallel()
	r := orchestrator(t, "tools", "call", "list_files", "--json")
	var result schema.Result
	if err := json.Unmarshal([]byte(r.Stdout), &result); err != nil || r.Code != 0 || !result.OK || result.Worker == "" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestSecretsStayOutOfWorkers(t *testing.T) {
	t.Parallel()
	r := harness.Run(t, harness.Command{
		Program: program, Args: []string{"tools", "call", "bash", `{"command":"env; tr '\\0' '\\n' < /proc/$PPID/environ; echo end"}`},
		Env: []string{"OPENAI_API_KEY=planted-1", "OTEL_EXPORTER_OTLP_HEADERS=key=planted-2", "MY_TOKEN=planted-3"},
	})
	if r.Code != 0 || strings.Contains(r.Stdout+r.Stderr, "planted") || strings.Contains(r.Stdout, "nats://") {
		t.Errorf("%+v", r)
	}
}

func TestDataSurvives(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	for range 2 {
		if r := orchestrator(t, "tools", "call", "list_files", "--data", dir); r.Code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "jetstream")); err != nil {
		t.Error(err)
	}
}
