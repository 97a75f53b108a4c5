package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/bus/embedded"
	"github.com/jetcrew/jetcrew/schema"
)

// live is an agent at work in one process, a worker in another, and a server.
type live struct {
	office
	*provider
	url   string
	agent *harness.Process
}

// bash is a model's answer that calls the shell once per command.
func bash(t *testing.T, commands ...string) string {
	t.Helper()
	type function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	type call struct {
		Index    int      `json:"index"`
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	var calls []call
	for i, c := range commands {
		args, _ := json.Marshal(map[string]string{"command": c}) // strings always encode
		calls = append(calls, call{i, fmt.Sprintf("c%d", i), "function", function{"bash", string(args)}})
	}
	delta, err := json.Marshal(map[string]any{"tool_calls": calls})
	if err != nil {
		t.Fatal(err)
	}
	return string(delta)
}

// newLive starts an agent whose model gives the answers.
func newLive(t *testing.T, answers ...string) *live {
	t.Helper()
	l := &live{office: newOffice(t, "{provider: openai, model: local, options: {parallelToolCalls: true}}", "tools: [bash]"), provider: newProvider(t, answers...), url: natsServer(t)}
	worker := l.command("worker", "serve", "--queue", "shell=4", "--nats", l.url)
	harness.Start(t, worker)
	c := l.command("run", "go", "--nats", l.url)
	c.Env = []string{"OPENAI_BASE_URL=" + l.URL}
	l.agent = harness.Start(t, c)
	return l
}

// await waits until a command has written a file.
func (l *live) await(t *testing.T, name string) {
	t.Helper()
	bustest.Eventually(t, name+" is there", func() bool {
		_, err := os.Stat(filepath.Join(l.dir, name))
		return err == nil
	})
}

// asked returns the requests to the model.
func (l *live) asked() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}

// runs runs a command about runs and returns what it wrote.
func (l *live) runs(t *testing.T, code int, args ...string) string {
	t.Helper()
	r := orchestrator(t, append(append([]string{"runs"}, args...), "--nats", l.url)...)
	wantCode(t, r, code)
	return r.Stdout + r.Stderr
}

// id returns the id of the one run.
func (l *live) id(t *testing.T) string {
	t.Helper()
	var listed listedRun
	if err := json.Unmarshal([]byte(l.runs(t, 0, "list", "--open", "--json")), &listed); err != nil || listed.Agent != "helper" {
		t.Fatalf("%+v, %v", listed, err)
	}
	return listed.Run
}

func (l *live) watch(t *testing.T, args ...string) *harness.Process {
	t.Helper()
	return harness.Start(t, harness.Command{Program: program, Args: append([]string{"runs", "watch", "--nats", l.url}, args...)})
}

// TestSayToALiveAgent: what another process says is in the next request to the model, and whoever watches sees it all.
func TestSayToALiveAgent(t *testing.T) {
	t.Parallel()
	l := newLive(t, bash(t, "touch began; until [ -e go ]; do sleep 0.02; done; echo went"), `{"content":"I bought both."}`)
	l.await(t, "began")
	id := l.id(t)
	people, programs, leaver := l.watch(t, id), l.watch(t, id, "--json"), l.watch(t, id)
	leaver.Await("begin")
	leaver.Interrupt()
	left := leaver.Wait()
	wantCode(t, left, 130)
	wantInOrder(t, left.Stderr, "the run goes on", "interrupted")
	if strings.Contains(left.Stderr, "cancelled") {
		t.Errorf("the end of the watching says %q", left.Stderr)
	}
	wantInOrder(t, l.runs(t, 0, "say", id[:len(id)-1], "buy eggs too"), "say.2")
	wantInOrder(t, l.runs(t, 0, "show", id), "agent    helper", "state    open", "1.0", "bash", "open")
	l.write(t, "go", "")
	r := l.agent.Wait()
	wantCode(t, r, 0)
	wantInOrder(t, r.Stdout, "I bought both.")
	if asked := l.asked(); len(asked) != 2 || !strings.Contains(asked[1], "buy eggs too") {
		t.Errorf("requests %q", asked)
	}
	seen := people.Wait()
	wantCode(t, seen, 0)
	wantInOrder(t, seen.Stdout, "open        agent helper", "ctl.1", "owner", "say.1", "user: go", "turn.1", "1 call", "call   1.0  bash c0, queue shell",
		"begin  1.0  bash at", "say.2", "buy eggs too", "result 1.0  bash ok by", ": went", "turn.2      I bought both.", "answer.1    done: I bought both.", "close       done, 2 turns, 1 call")
	heard := programs.Wait()
	wantCode(t, heard, 0)
	for line := range strings.Lines(heard.Stdout) {
		var f struct {
			Fact string
			Data struct{ V int }
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.Fact == "" || f.Data.V != schema.Version {
			t.Errorf("%s: %v", line, err)
		}
	}
	wantInOrder(t, heard.Stdout, `"fact":"open"`, `"text":"buy eggs too"`, `"fact":"result.1.0.shell"`, `"output":"went\n"`, `"fact":"close"`)
	wantInOrder(t, l.runs(t, 0, "show", id), "1.0", "say.1", "user: go", "turn.1", "1 call", "say.2", "buy eggs too", "turn.2", "answer.1", "done, after turn 2", "I bought both.")
	wantInOrder(t, l.runs(t, 1, "say", id, "more"), "closed")
	wantInOrder(t, l.runs(t, 1, "watch", "nobody"), "no such run", "runs list")
}

// TestC05D04D20StopOfALiveAgent: a stop from elsewhere ends the commands that run, with all that they have started; the
// run closes after every one of its calls has settled, and nothing happens afterwards.
func TestC05D04D20StopOfALiveAgent(t *testing.T) {
	t.Parallel()
	const deaf = `trap "" TERM INT; `
	l := newLive(t, bash(t,
		"sleep 600 & echo $! > child; touch began.0; wait; touch after",
		deaf+"echo $$ > deaf; touch began.1; while :; do sleep 1; done",
		"touch began.2; sleep 600; touch after",
	), `{"content":"never"}`)
	for i := range 3 {
		l.await(t, fmt.Sprintf("began.%d", i))
	}
	id := l.id(t)
	wantInOrder(t, l.runs(t, 0, "stop", id, "--why", "enough"), "wrote the stop in slot ctl.2", "told the workers")
	r := l.agent.Wait()
	if r.Code == 0 || strings.Contains(r.Stdout, "never") || len(l.asked()) != 1 {
		t.Errorf("the agent ended with %d after %d requests: %s", r.Code, len(l.asked()), r.Stdout)
	}
	for _, name := range []string{"child", "deaf"} {
		text, err := os.ReadFile(filepath.Join(l.dir, name))
		pid, atoi := strconv.Atoi(strings.TrimSpace(string(text)))
		if err := errors.Join(err, atoi); err != nil {
			t.Fatal(err)
		}
		bustest.Eventually(t, name+" is gone", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	}
	if _, err := os.Stat(filepath.Join(l.dir, "after")); err == nil {
		t.Error("a stopped command went on")
	}
	b, err := bus.Connect(t.Context(), bus.Config{URL: l.url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	facts, err := b.Facts(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range bustest.Check(facts) {
		t.Error(err)
	}
	if last := facts[len(facts)-1].Key; last != schema.CloseKey() {
		t.Errorf("the last fact is %s", last)
	}
	wantInOrder(t, l.runs(t, 0, "show", id), "state    stopped", "stop", "enough", "Cancelled", "Cancelled", "Cancelled")
}

// TestRunsOfADirectory: what an embedded server has recorded is read, and tried again, later.
func TestRunsOfADirectory(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "replay/RECORDING#task")
	wantCode(t, o.run(t, "run", "--data", "data", "what do my notes say?"), 0)
	r := o.run(t, "runs", "list", "--data", "data", "--json")
	wantCode(t, r, 0)
	var listed listedRun
	if err := json.Unmarshal([]byte(r.Stdout), &listed); err != nil || !listed.Closed || listed.Calls != 2 {
		t.Fatalf("%+v, %v", listed, err)
	}
	wantInOrder(t, o.run(t, "runs", "show", listed.Run, "--call", "1.0", "--data", "data").Stdout,
		"tool", "read_file", "decided    allow", "reached    yes", "outcome    ok", "memory     buy milk")
	bury(t, filepath.Join(o.dir, "data"), &schema.Call{Run: "r", Turn: 2, Index: 1, Tool: "read_file", Args: `{"path":"note.txt"}`})
	wantInOrder(t, o.run(t, "dead", "list", "--data", "data").Stdout, "1 ", "files", "read_file", "its worker was lost")
	retried := o.run(t, "dead", "retry", "1", "--data", "data")
	wantCode(t, retried, 0)
	wantInOrder(t, retried.Stdout, "new call", "succeeded", "buy milk")
	wantInOrder(t, o.run(t, "dead", "retry", "7", "--data", "data").Stderr, "no such dead letter", "dead list")
	wantCode(t, o.run(t, "dead", "drop", "1", "--data", "data"), 0)
	wantInOrder(t, o.run(t, "runs", "list").Stderr, "--nats", "NATS_URL", "--data")
	for _, args := range [][]string{{"runs", "list", "--data", "dota"}, {"approvals", "list", "--data", "data", "--nats", "nats://127.0.0.1:1"}} {
		r := o.run(t, args...)
		wantCode(t, r, 2)
		wantInOrder(t, r.Stderr, "--data", args[3])
	}
	if _, err := os.Stat(filepath.Join(o.dir, "dota")); err == nil {
		t.Error("a directory that was mistyped is made")
	}
}

// bury puts a call among the dead letters of a server's directory.
func bury(t *testing.T, dir string, call *schema.Call) {
	t.Helper()
	srv, err := embedded.Start(embedded.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Stop()
	nc, err := nats.Connect(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	letter := &bus.DeadLetter{Queue: "files", Reason: "its worker was lost", Delivery: 4, Worker: "w1"}
	if letter.Data, err = schema.Encode(call); err != nil {
		t.Fatal(err)
	}
	data, err := schema.Encode(letter)
	if err == nil {
		_, err = nc.Request("jc.dead.files", data, 5*time.Second)
	}
	if err != nil {
		t.Fatal(err)
	}
}
