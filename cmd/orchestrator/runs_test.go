package main

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

// TestRunsFromElsewhere lists, watches and steers runs that other processes have.
func TestRunsFromElsewhere(t *testing.T) {
	t.Parallel()
	url := natsServer(t)
	b, err := bus.Connect(t.Context(), bus.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	put := func(run string, key schema.Key, p schema.Encodable) {
		if _, err := b.Append(t.Context(), run, key, p, schema.Key{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, run := range []string{"first-1", "first-2"} {
		put(run, schema.OpenKey(), &schema.Open{Kind: schema.RunAgent, Agent: &schema.AgentSpec{ID: "help\x1b[2Jer"}})
	}
	put("first-1", schema.CloseKey(), &schema.Close{State: "done", Turns: 2, Calls: 5})
	put("first-2", schema.TurnKey(1), &schema.Turn{N: 1, Calls: make([]schema.TurnCall, 3)})
	runs := func(code int, args ...string) string {
		t.Helper()
		r := orchestrator(t, append(append([]string{"runs"}, args...), "--nats", url)...)
		wantCode(t, r, code)
		if strings.ContainsRune(r.Stdout+r.Stderr, '\x1b') {
			t.Errorf("%v steers the terminal: %q", args, r.Stdout+r.Stderr)
		}
		return r.Stdout + r.Stderr
	}
	wantInOrder(t, runs(0, "list"), "RUN", "first-2  helper  open", "1", "3", "first-1  helper  done", "2", "5")
	if out := runs(0, "list", "--open"); strings.Contains(out, "first-1") {
		t.Errorf("a closed run among the open ones:\n%s", out)
	}
	wantInOrder(t, runs(0, "list", "--json", "--limit", "1"), `"run":"first-2"`, `"state":"open"`)
	wantInOrder(t, runs(2, "watch", "first"), "several runs")
	wantInOrder(t, runs(1, "watch", "none"), "no such run")
	wantInOrder(t, runs(0, "watch", "first-1"), "open", "close")
	wantInOrder(t, runs(0, "say", "first-2", "hello"), "say.1")
	wantInOrder(t, runs(1, "say", "first-1", "hello"), "closed")
	wantInOrder(t, runs(0, "stop", "first-2", "--why", "enough"), "wrote the stop in slot ctl.1")
	wantInOrder(t, runs(0, "stop", "first-2"), "found the stop")
	wantInOrder(t, runs(2, "stop", "first-2", "--why", "close"), "runs close")
	wantInOrder(t, runs(0, "list"), "stopping")
	wantInOrder(t, runs(1, "stop", "first-1"), "closed")
	wantInOrder(t, runs(1, "stop", "queued"), "no such run")
	if err := b.StartRun(t.Context(), &schema.Call{Run: "queued-1", Tool: "helper", Args: `{"task":"go"}`}); err != nil {
		t.Fatal(err)
	}
	wantInOrder(t, runs(0, "list"), "queued-1  helper  queued", "first-2")
	wantInOrder(t, runs(0, "list", "--json", "--limit", "1", "--open"), `"run":"queued-1"`, `"state":"queued"`)
	wantInOrder(t, runs(0, "show", "queued"), "run      queued-1", "agent    helper", "state    queued", "nobody has taken it yet", `{"task":"go"}`)
	wantInOrder(t, runs(1, "say", "queued", "hello"), "waits in the queue")
	wantInOrder(t, runs(0, "stop", "queued"), "run queued-1: wrote the stop in slot ctl.1")
	wantInOrder(t, runs(0, "show", "queued"), "state    stopping", "ctl.1", "it was stopped before anybody took it")
	wantInOrder(t, runs(0, "list"), "queued-1  helper  stopping", "first-2")
	wantCode(t, orchestrator(t, "runs", "list"), 2)
}

func TestDead(t *testing.T) {
	t.Parallel()
	url := natsServer(t)
	wantInOrder(t, orchestrator(t, "dead", "list", "--nats", url).Stdout, "ID", "WHY")
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	letter := &bus.DeadLetter{Queue: "files", Reason: "lost\x1b[2J its worker", Delivery: 4, Worker: "w1"}
	letter.Data, _ = schema.Encode(&schema.Call{Run: "r", Turn: 2, Index: 1, Tool: "read_file", Args: `{"path":"x"}`})
	for range 2 {
		data, _ := schema.Encode(letter)
		if _, err := nc.Request("jc.dead.files", data, 5*time.Second); err != nil {
			t.Fatal(err)
		}
		letter.Size = 1 << 20
	}
	dead := func(code int, args ...string) string {
		t.Helper()
		r := orchestrator(t, append(append([]string{"dead"}, args...), "--nats", url)...)
		wantCode(t, r, code)
		if strings.ContainsRune(r.Stdout+r.Stderr, '\x1b') {
			t.Errorf("%v steers the terminal: %q", args, r.Stdout+r.Stderr)
		}
		return r.Stdout + r.Stderr
	}
	wantInOrder(t, dead(0, "list"), "2 ", "files", "1 ", "read_file", "r/2.1", "4", "lost its worker")
	wantInOrder(t, dead(0, "show", "1"), "read_file", "r/2.1", `{"path":"x"}`)
	wantInOrder(t, dead(1, "retry", "2"), "cannot be tried again")
	wantInOrder(t, dead(1, "retry", "1", "--timeout", "300ms"), "failed", "NoWorker")
	wantInOrder(t, dead(0, "drop", "1"), "dropped")
	wantInOrder(t, dead(1, "drop", "1"), "no such dead letter")
}
