package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

// TestRunsShow: for each kind of call it is said what decided it, whether the tool was reached, and what the memory has.
func TestRunsShow(t *testing.T) {
	t.Parallel()
	url := natsServer(t)
	b, err := bus.Connect(t.Context(), bus.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	put := func(key schema.Key, p schema.Encodable) {
		t.Helper()
		if _, err := b.Append(t.Context(), "r-1", key, p, schema.Key{}); err != nil {
			t.Fatal(err)
		}
	}
	allow := schema.Decision{Action: schema.ActionAllow}
	ask := schema.Decision{Action: schema.ActionAsk, Rule: "mails", Text: "it cannot be taken back"}
	calls := []schema.TurnCall{
		{Label: "a", Tool: "send\x1b[2J", Args: `{"to":"x"}`, Raw: `"{\"to\":\"x\"}"`, Notes: []string{"arguments unwrapped"}, Queue: "mail", Decision: allow},
		{Label: "b", Tool: "read", Args: `{}`, Queue: schema.QueueNone, Decision: schema.Decision{Action: schema.ActionInvalid, Rule: "schema", Type: schema.InvalidArguments, Text: "missing path"}},
		{Label: "c", Tool: "send", Args: `{}`, Queue: "mail", Decision: allow},
		{Label: "d", Tool: "read", Args: `{}`, Queue: "files", Idempotent: true, Decision: allow},
		{Label: "e", Tool: "send", Args: `{}`, Queue: "mail", Decision: ask},
		{Label: "f", Tool: "send", Args: `{}`, Queue: "mail", Decision: ask},
	}
	put(schema.OpenKey(), &schema.Open{Kind: schema.RunAgent, Agent: &schema.AgentSpec{ID: "helper"}})
	put(schema.CtlKey(1), &schema.Ctl{Act: schema.CtlOwn, Instance: "o-1", Seq: 3})
	put(schema.SayKey(1), &schema.Say{Role: schema.RoleUser, Text: "go\nand be quick"})
	put(schema.TurnKey(1), &schema.Turn{N: 1, Own: 1, Say: 1, Calls: calls, Model: "m-1", Text: "let me see", Usage: schema.Usage{Input: 70, Output: 5}, StartedMS: 1000})
	put(schema.BackKey(1, 0, "mail", 7, 1), &schema.Back{Instance: "w-1", Reason: "shutting down"})
	put(schema.BeginKey(1, 0, "mail"), &schema.Begin{Instance: "w-2", Delivery: 2, Seq: 7})
	sent := &schema.Result{Run: "r-1", Turn: 1, OK: true, Output: "token=secret", Worker: "w-2", Delivery: 2, QueuedMS: 3, StartedMS: 1000, EndedMS: 1250}
	put(schema.ResultKey(1, 0, "mail"), sent)
	put(schema.ViewKey(1, 0), &schema.View{Text: "withheld"})
	bad := (&schema.Call{Run: "r-1", Turn: 1, Index: 1, Tool: "read"}).Fail(schema.InvalidArguments, "missing path")
	put(schema.ResultKey(1, 1, schema.QueueNone), &bad)
	put(schema.BeginKey(1, 2, "mail"), &schema.Begin{Instance: "w-3", Delivery: 1, Seq: 9})
	for i := range 2 {
		put(schema.AskKey(1, 4+i, 1), schema.NewAsk(&calls[4+i], ask, ""))
	}
	put(schema.VerdictKey(1, 5, 1), &schema.Verdict{Decision: schema.VerdictDeny, By: "ada", Why: "not today"})
	refused, _ := schema.Decision{Action: schema.ActionDeny, Text: "not today"}.Outcome(&schema.Call{Run: "r-1", Turn: 1, Index: 5, Tool: "send"})
	put(schema.ResultKey(1, 5, "mail"), &refused)
	forged := (&schema.Call{Run: "r-1", Turn: 1, Index: 0, Tool: "send"}).Fail(schema.InvalidArguments, "a result of another queue")
	put(schema.ResultKey(1, 0, schema.QueueAgents), &forged)
	show := func(code int, args ...string) string {
		t.Helper()
		r := orchestrator(t, append([]string{"runs", "show", "r-1", "--nats", url}, args...)...)
		wantCode(t, r, code)
		if strings.ContainsRune(r.Stdout+r.Stderr, '\x1b') {
			t.Errorf("%v steers the terminal: %q", args, r.Stdout+r.Stderr)
		}
		return r.Stdout + r.Stderr
	}
	wantInOrder(t, show(0), "agent    helper", "state    open", "ctl.1    own o-1", "asks     call 1.4 waits for a person: orchestrator approvals show r-1 1.4\n\nCALL",
		"1.0", "mail", "allow", "ok", "w-2", "2", "250 ms", "1.1", "invalid", "InvalidArguments", "1.2", "open", "1.3",
		"say.1", "user: go", "turn.1", "6 calls, m-1, 70 tokens in and 5 out, after", ": let me see")
	wantInOrder(t, show(0, "--call", "1.0"),
		"run-once, queue mail", "arguments unwrapped", "decided    allow", "by w-1: shutting down", "by w-2, delivery 2 of message 7", "yes: w-2 ran it in delivery 2", "memory     withheld")
	wantInOrder(t, show(0, "--call", "1.1"), "decided    invalid schema InvalidArguments missing path", "no: it was decided before", "TOOL_ERROR")
	wantInOrder(t, show(0, "--call", "1.2"), "perhaps: it began", "outcome    open")
	wantInOrder(t, show(0, "--call", "1.3"), "not yet")
	wantInOrder(t, show(0, "--call", "1.4"), "decided    ask mails", "asked      a person, until", "mails it cannot be taken back", "not yet: a person is asked", "outcome    open")
	wantInOrder(t, show(0, "--call", "1.5"), "asked      a person", "verdict    deny by ada: not today", "no: it was refused", "outcome    Denied", "DENIED: not today")
	wantInOrder(t, show(1, "--call", "2.0"), "run r-1 has no call 2.0")
	wantInOrder(t, show(2, "--call", "first"), "want TURN.INDEX such as 1.0")
	var run shownRun
	if err := json.Unmarshal([]byte(show(0, "--json")), &run); err != nil || len(run.Calls) != 6 || run.Calls[5].Asks[0].Verdict.By != "ada" || run.Calls[0].Result.Output != "token=secret" {
		t.Errorf("%+v, %v", run, err)
	}
	put(schema.CtlKey(2), &schema.Ctl{Act: schema.CtlStop, Why: "enough"})
	put(schema.AnswerKey(1), &schema.Answer{Reason: schema.ReasonCancelled, Error: "enough", Turn: 1, Say: 1})
	put(schema.SayKey(2), &schema.Say{Role: schema.RoleUser, Text: "too late"})
	put(schema.CloseKey(), &schema.Close{State: "stopped"})
	wantInOrder(t, show(0), "state    stopped", "closed", "stop", "enough", "1.0", "say.1", "turn.1", "answer.1", "cancelled, after turn 1: enough", "say.2", "user: too late")
}

// TestRunsShowOfACall: of a call without an agent is shown how it went.
func TestRunsShowOfACall(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "replay/RECORDING#task")
	wantCode(t, o.run(t, "tools", "call", "read_file", `{"path":"note.txt"}`, "--data", "data"), 0)
	var listed listedRun
	if err := json.Unmarshal([]byte(o.run(t, "runs", "list", "--json", "--data", "data").Stdout), &listed); err != nil || listed.Kind != schema.RunCall {
		t.Fatalf("%+v, %v", listed, err)
	}
	wantInOrder(t, o.run(t, "runs", "show", listed.Run, "--data", "data").Stdout, "agent    -", "state    done", "1.0", "files", "ok")
	wantInOrder(t, o.run(t, "runs", "show", listed.Run, "--call", "1.0", "--data", "data").Stdout, "outside any turn", "reached    yes", "memory     buy milk")
}
