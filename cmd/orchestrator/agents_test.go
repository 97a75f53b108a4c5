package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jetcrew/jetcrew/bus/bustest/harness"
)

// office is a directory with an agent file and a note to read.
type office struct{ dir string }

// newOffice writes an agent of a model. Further lines go into its file as they are.
func newOffice(t *testing.T, model string, more ...string) office {
	t.Helper()
	o := office{t.TempDir()}
	recording, err := filepath.Abs(filepath.Join("testdata", "notes.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	file := append([]string{
		"version: jetcrew/v1", "id: helper", "model: " + strings.Replace(model, "RECORDING", recording, 1),
	}, more...)
	if len(more) == 0 {
		file = append(file, "tools: [read_file, list_files, watch_files, bash]")
	}
	o.write(t, "agent.yaml", strings.Join(file, "\n")+"\n")
	o.write(t, "note.txt", "buy milk\n")
	return o
}

func (o office) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (o office) command(args ...string) harness.Command {
	return harness.Command{Program: program, Dir: o.dir, Args: args}
}

func (o office) run(t *testing.T, args ...string) harness.Result {
	t.Helper()
	return harness.Run(t, o.command(args...))
}

// wantCode fails the test if a command ended with another code.
func wantCode(t *testing.T, r harness.Result, code int) {
	t.Helper()
	if r.Code != code {
		t.Fatalf("exit code %d, want %d; stdout:\n%s\nstderr:\n%s", r.Code, code, r.Stdout, r.Stderr)
	}
}

// wantInOrder fails the test unless text holds all parts, one after the other.
func wantInOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, p := range parts {
		_, after, ok := strings.Cut(rest, p)
		if !ok {
			t.Fatalf("%q is missing, or not where it belongs, in:\n%s", p, text)
		}
		rest = after
	}
}

func TestRunWithARecordedModel(t *testing.T) {
	t.Parallel()
	r := newOffice(t, "replay/RECORDING#task").run(t, "run", "what do my notes say?")
	wantCode(t, r, 0)
	wantInOrder(t, r.Stdout,
		"turn 1: 2 calls", "call    1.0 read_file", "call    1.1 bash", "memory  1.0 read_file: buy milk", "memory  1.1 bash: done", "turn 2: the answer", "One note: buy milk.")
	if r.Stderr != "" {
		t.Errorf("stderr: %q, want nothing", r.Stderr)
	}
}

// TestRunWarnsOfItsFile: what check would warn about keeps no run from starting, and is said all the same.
func TestRunWarnsOfItsFile(t *testing.T) {
	t.Parallel()
	r := newOffice(t, "replay/RECORDING#task", "tools: [{ref: read_file, approval: ask}, list_files, watch_files, bash]").run(t, "run", "--quiet", "x")
	wantCode(t, r, 0)
	wantInOrder(t, r.Stderr, "WARN", "approval ask", "file=agent.yaml line=4 column=36")
}

func TestRunQuietPrintsTheAnswerOnly(t *testing.T) {
	t.Parallel()
	c := newOffice(t, "replay/RECORDING#task").command("run", "--quiet", "-")
	c.Input = "what do my notes say?\n"
	r := harness.Run(t, c)
	wantCode(t, r, 0)
	if r.Stdout != "One note: buy milk.\n" || r.Stderr != "" {
		t.Errorf("stdout %q, stderr %q; want the answer only", r.Stdout, r.Stderr)
	}
}

func TestRunSaysWhatIsWrongBeforeItStarts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, model string
		files       map[string]string
		args, want  []string
	}{
		{"no agent file", "replay/RECORDING#task", nil, []string{"run", "-f", "other.yaml", "x"}, []string{"other.yaml", "init"}},
		{"a mistake in the agent file", "replay/RECORDING#task\nlimit: {}", nil, []string{"run", "x"}, []string{"agent.yaml:4:1", "limit"}},
		{"no key", "openai/gpt-4o", nil, []string{"run", "x"}, []string{"OPENAI_API_KEY"}},
		{"no key for the other provider", "anthropic/claude", nil, []string{"run", "x"}, []string{"ANTHROPIC_API_KEY"}},
		{"no such recording", "replay/none.jsonl", nil, []string{"run", "x"}, []string{"none.jsonl"}},
		{"no such id in the recording", "replay/RECORDING#none", nil, []string{"run", "x"}, []string{`"none"`, "notes.jsonl"}},
		{"an id that no transcript has", "replay/RECORDING", nil, []string{"run", "x"}, []string{`"helper"`, "#ID"}},
		{"an empty task", "replay/RECORDING#task", nil, []string{"run", " "}, []string{"task is empty"}},
		{"a bad environment file", "replay/RECORDING#task", map[string]string{".env": "OPENAI_API_KEY\nsecret stuff"}, []string{"run", "x"}, []string{".env:1"}},
		{"a named environment file that is missing", "replay/RECORDING#task", nil, []string{"run", "--env", "x.env", "x"}, []string{"x.env"}},
		{"a place that cannot be written", "replay/RECORDING#task", nil, []string{"run", "--record", "no/dir/out.jsonl", "x"}, []string{"record", "out.jsonl"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, tt.model)
			for name, text := range tt.files {
				o.write(t, name, text)
			}
			r := o.run(t, tt.args...)
			wantCode(t, r, 2)
			wantInOrder(t, r.Stderr, tt.want...)
			if strings.Contains(r.Stderr, "goroutine") || strings.Contains(r.Stderr, "secret stuff") {
				t.Errorf("stderr says too much: %s", r.Stderr)
			}
		})
	}
}

func TestRunNamesToolsThatNobodyHas(t *testing.T) {
	t.Parallel()
	r := newOffice(t, "replay/RECORDING#task", "tools: [read_file, browse, paint_*]").run(t, "run", "x")
	wantCode(t, r, 1)
	wantInOrder(t, r.Stderr, "browse", "paint_*", "5s")
	if strings.Contains(r.Stderr, "read_file") {
		t.Errorf("read_file has a worker: %s", r.Stderr)
	}
}

func TestRunOfALimitWithAnAnswerIsNoFailure(t *testing.T) {
	t.Parallel()
	r := newOffice(t, "replay/RECORDING#task", "tools: [read_file, bash]", "limits: {maxSteps: 1}").run(t, "run", "x")
	wantCode(t, r, 0)
	wantInOrder(t, r.Stdout, "turn 2: the last one, without tools", "One note: buy milk.", "ended: max steps")
}

func TestRunWhoseModelHasNoAnswerFails(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "replay/short.jsonl")
	o.write(t, "short.jsonl", `{"id":"short","tools":[],"messages":[{"role":"user","content":"x"}]}`)
	r := o.run(t, "run", "--quiet", "x")
	wantCode(t, r, 1)
	if r.Stdout != "" || !strings.Contains(r.Stderr, "transcript_end") {
		t.Errorf("stdout %q, stderr %q; want why on stderr", r.Stdout, r.Stderr)
	}
}

func TestRecordedRunReplays(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "replay/RECORDING#task")
	o.write(t, "out.jsonl", strings.Repeat("longer than what comes\n", 1000))
	wantCode(t, o.run(t, "run", "--record", "out.jsonl", "what do my notes say?"), 0)
	r := o.run(t, "replay", "out.jsonl", "--workers", "1")
	wantCode(t, r, 0)
	data, err := os.ReadFile(filepath.Join(o.dir, "out.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	wantInOrder(t, string(data), `{"id":"helper"`, "what do my notes say?", "buy milk", "done", "One note")
}

func TestChat(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, input string
		code        int
		want        []string
	}{
		{"two exchanges", "hello\n\n  \nthe notes", 0, []string{"Hello. What shall I read?", "memory  2.0 read_file: buy milk", "One note: buy milk."}},
		{"nothing said", "", 0, nil},
		{"no answer to the last", "hello\nthe notes\nmore\n", 1, []string{"One note: buy milk.", "ended: transcript end"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newOffice(t, "replay/RECORDING#notes").command("chat")
			c.Input = tt.input
			r := harness.Run(t, c)
			wantCode(t, r, tt.code)
			wantInOrder(t, r.Stdout, tt.want...)
			if r.Stderr != "" || strings.Contains(r.Stdout, "> ") {
				t.Errorf("stdout %q, stderr %q; want no prompt in a pipe and no complaint", r.Stdout, r.Stderr)
			}
		})
	}
}

func TestInterruptedRunSettlesAndSaysSo(t *testing.T) {
	t.Parallel()
	p := harness.Start(t, newOffice(t, "replay/RECORDING#slow").command("run", "wait"))
	p.Await("running 1.0 watch_files on worker")
	p.Signal(os.Interrupt)
	r := p.Wait()
	wantCode(t, r, 130)
	wantInOrder(t, r.Stdout, "memory  1.0 watch_files: TOOL_ERROR", "Cancelled")
	wantInOrder(t, r.Stderr, "ending", "interrupted")
}

func TestRunOnAServerOfOnesOwn(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "replay/RECORDING#task")
	url := natsServer(t)
	worker := harness.Start(t, harness.Command{
		Program: program, Dir: o.dir, Args: []string{"worker", "serve", "--queue", "files", "--queue", "shell", "--nats", url},
	})
	c := o.command("run", "what do my notes say?")
	c.Env = []string{"NATS_URL=" + url}
	r := harness.Run(t, c)
	wantCode(t, r, 0)
	wantInOrder(t, r.Stdout, "from worker …", "One note: buy milk.")
	worker.Signal(os.Interrupt)
	if r := worker.Wait(); r.Code != 0 {
		t.Errorf("the worker ended with %d: %s", r.Code, r.Stderr)
	}
}

func TestWorkersDoNotGetTheKeys(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "replay/leak.jsonl")
	o.write(t, "leak.jsonl", fmt.Sprintf(`{"id":"leak","tools":[],"messages":[{"role":"user","content":"x"},`+
		`{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"bash","arguments":%q}}]},`+
		`{"role":"assistant","content":"ok"}]}`, `{"command":"env; tr '\\0' '\\n' </proc/$PPID/environ"}`))
	c := o.command("run", "--json", "x")
	c.Env = []string{"OPENAI_API_KEY=sk-very-secret", "ANTHROPIC_API_KEY=sk-ant-secret", "AWS_SECRET_ACCESS_KEY=hidden-too"}
	r := harness.Run(t, c)
	wantCode(t, r, 0)
	for _, secret := range []string{"sk-very-secret", "sk-ant-secret", "hidden-too"} {
		if strings.Contains(r.Stdout+r.Stderr, secret) {
			t.Errorf("a worker saw %s", secret)
		}
	}
}
