package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/loop/audit"
	"github.com/jetcrew/jetcrew/schema"
)

// auditedRun writes a run in which one call was denied and one ran.
func auditedRun(t *testing.T, b *bus.Bus, run string) {
	t.Helper()
	for _, f := range []struct {
		key schema.Key
		p   schema.Encodable
	}{
		{schema.OpenKey(), &schema.Open{Kind: schema.RunAgent, Agent: &schema.AgentSpec{ID: "helper"}, Principal: schema.Principal{ID: "bob", Tenant: "acme"}}},
		{schema.SayKey(1), &schema.Say{Role: schema.RoleUser, Text: "xyzzy"}},
		{schema.TurnKey(1), &schema.Turn{N: 1, Calls: []schema.TurnCall{
			{Tool: "bash", Args: `{"c":"xyzzy"}`, Queue: schema.QueueNone, Decision: schema.Decision{Action: schema.ActionDeny, Rule: "no-\x1b[2Jshell", Text: "xyzzy"}},
			{Tool: "read_file", Args: `{"p":"xyzzy"}`, Queue: "files", Decision: schema.Decision{Action: schema.ActionAllow}},
		}}},
		{schema.ResultKey(1, 0, schema.QueueNone), &schema.Result{Run: run, Turn: 1, Output: "DENIED: xyzzy", Error: &schema.Error{Type: schema.Denied, Message: "xyzzy"}}},
		{schema.BeginKey(1, 1, "files"), &schema.Begin{Instance: "worker-123456", Delivery: 1}},
		{schema.ResultKey(1, 1, "files"), &schema.Result{Run: run, Turn: 1, Index: 1, OK: true, Output: "xyzzy", Worker: "worker-123456", StartedMS: 5, EndedMS: 6}},
		{schema.CloseKey(), &schema.Close{State: "stopped", Turns: 1, Calls: 2}},
	} {
		if _, err := b.Append(t.Context(), run, f.key, f.p, schema.Key{}); err != nil {
			t.Fatal(err)
		}
	}
}

func auditServer(t *testing.T) (url string, b *bus.Bus) {
	t.Helper()
	url = natsServer(t)
	b, err := bus.Connect(t.Context(), bus.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return url, b
}

// TestAuditOfARun prints the trail and finds what was put into the facts later.
func TestAuditOfARun(t *testing.T) {
	t.Parallel()
	url, b := auditServer(t)
	auditedRun(t, b, "audited-1")
	run := func(code int, args ...string) string {
		t.Helper()
		r := orchestrator(t, append([]string{"audit", "--nats", url}, args...)...)
		wantCode(t, r, code)
		if strings.ContainsRune(r.Stdout+r.Stderr, '\x1b') || strings.Contains(r.Stdout, "xyzzy") {
			t.Errorf("%v steers the terminal, or shows contents: %q", args, r.Stdout)
		}
		return r.Stdout
	}
	wantInOrder(t, run(0, "audited"), "opened", "bob@acme", "said", "decided", "none/bash", "deny no-", "decided", "files/read_file", "allow",
		"result", "Denied", "began", "…123456", "result", "ok", "closed", "stopped", "checked: the 7 facts of the run fit together")
	wantInOrder(t, run(0, "audited-1", "--json"), `"what":"opened"`, `"principal":"bob"`, `"what":"closed"`)
	if _, err := b.Append(t.Context(), "audited-1", schema.BeginKey(1, 0, schema.QueueNone), &schema.Begin{Instance: "w"}, schema.Key{}); err != nil {
		t.Fatal(err)
	}
	wantInOrder(t, run(1, "audited-1"), "2 problems", `begin.1.0.none (8): it was written after close`, `the decision about the call was "deny"`)
	wantInOrder(t, run(1, "audited-1", "--json"), `{"what":"problem","run":"audited-1","fact":"begin.1.0.none","seq":8,"text":"it was written after close"}`)
	for _, args := range [][]string{{}, {"x", "--follow"}, {"x", "--to", "f"}, {"--follow", "--to", "f", "--stream", "S"}} {
		run(2, args...)
	}
}

// TestAuditFollows: records come while facts are stored, and a second audit of the name goes on where the first ended.
func TestAuditFollows(t *testing.T) {
	t.Parallel()
	url, b := auditServer(t)
	auditedRun(t, b, "run-1")
	follow := func(args ...string) *harness.Process {
		return harness.Start(t, harness.Command{Program: program, Args: append([]string{"audit", "--nats", url, "--follow"}, args...)})
	}
	end := func(p *harness.Process) {
		t.Helper()
		p.Signal(syscall.SIGTERM)
		if r := p.Wait(); r.Code != 143 {
			t.Errorf("exit %d: %s", r.Code, r.Stderr)
		}
	}
	p := follow()
	p.Await(`"fact":"close"`)
	auditedRun(t, b, "run-2")
	p.Await(`"run":"run-2","fact":"close"`)
	if got := records(t, p.Output()); len(got) != 18 || got[4].Tool != "read_file" || got[4].Principal != "bob" {
		t.Errorf("%d records: %+v", len(got), got)
	}
	end(p)
	auditedRun(t, b, "run-3")
	p = follow("--to", "/dev/stdout") // under the same name
	p.Await(`"run":"run-3","fact":"close"`)
	if got := records(t, p.Output()); len(got) != 9 || got[0].Run != "run-3" {
		t.Errorf("%d records after a new start: %+v", len(got), got)
	}
	end(p)
}

func TestAuditIntoAStream(t *testing.T) {
	t.Parallel()
	url, b := auditServer(t)
	auditedRun(t, b, "run-1")
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	sub, err := nc.SubscribeSync("jc.audit.AUDIT.>")
	if err != nil {
		t.Fatal(err)
	}
	p := harness.Start(t, harness.Command{Program: program, Args: []string{"audit", "--nats", url, "--follow", "--stream", "AUDIT"}})
	var got []audit.Record
	for len(got) < 9 {
		m, err := sub.NextMsg(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, records(t, string(m.Data)+"\n")...)
	}
	if got[8].What != audit.Closed {
		t.Errorf("records: %+v", got)
	}
	p.Signal(syscall.SIGTERM)
	p.Wait()
}

// records reads lines of JSON.
func records(t *testing.T, lines string) (list []audit.Record) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var r audit.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, r)
	}
	return list
}
