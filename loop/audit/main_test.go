package audit_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jetcrew/jetcrew/loop/audit"
	"github.com/jetcrew/jetcrew/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const run = "run-1"

// secret stands in everything that a record must not hold.
const secret = "xyzzy"

// written is a fact before it is stored.
type written struct {
	key schema.Key
	p   schema.Encodable
}

// stored gives facts their sequences and times.
func stored(t *testing.T, list []written) []schema.Fact {
	t.Helper()
	facts := make([]schema.Fact, len(list))
	for i, w := range list {
		data, err := schema.Encode(w.p)
		if err != nil {
			t.Fatal(err)
		}
		facts[i] = schema.Fact{Run: run, Key: w.key, Seq: uint64(i + 1), Time: time.UnixMilli(int64(1000 + i)).UTC(), Data: data}
	}
	return facts
}

func apply(facts []schema.Fact) (*audit.Trail, []audit.Record) {
	trail := audit.New(run)
	var records []audit.Record
	for _, f := range facts {
		records = append(records, trail.Apply(f)...)
	}
	return trail, records
}

func text(s string) string { return s + " " + secret }

// calls of the only turn: one that runs, one that a filter stops, one that a person is asked about.
func calls() []schema.TurnCall {
	return []schema.TurnCall{
		{
			Label: "c1", Tool: "read_file", Target: "read", Source: "disk", Raw: `"` + secret + `"`, Args: `{"path":"` + secret + `"}`, Bound: `{"root":"` + secret + `"}`,
			Queue: "files", Effect: schema.EffectRead, Digest: "d1", Decision: schema.Decision{Action: schema.ActionAllow},
		},
		{
			Label: "c2", Tool: "bash", Args: `{"command":"` + secret + `"}`, Queue: schema.QueueNone,
			Decision: schema.Decision{Action: schema.ActionDeny, Rule: "no-shell", Text: text("not this one")},
		},
		{
			Label: "c3", Tool: "pay", Args: `{"amount":"` + secret + `"}`, Queue: "bank", Effect: schema.EffectWrite, Digest: "d3",
			Decision: schema.Decision{Action: schema.ActionAsk, Rule: "money", Text: text("much money")},
		},
	}
}

// question returns the first question about the call that asks, and its approval.
func question() (*schema.Ask, *schema.Verdict) {
	c := calls()[2]
	a := schema.NewAsk(&c, c.Decision, "")
	a.ExpiresMS = 9000
	return a, &schema.Verdict{Decision: schema.VerdictApprove, Digest: a.Digest(run, schema.AskKey(1, 2, 1)), By: "alice", Why: "checked with the customer", AtMS: 1006}
}

// whole is a run with everything in it.
func whole() []written {
	ask, verdict := question()
	return []written{
		{schema.OpenKey(), &schema.Open{
			Kind: schema.RunAgent, Agent: &schema.AgentSpec{ID: "helper", Instructions: text("be kind")},
			Principal: schema.Principal{ID: "bob", Tenant: "acme", Scopes: []string{"tool:*"}}, Parent: &schema.CallRef{Run: "above", Turn: 2, Index: 1},
			Handoff: &schema.Handover{Name: "subagent_helper", Previous: "earlier"}, Before: []schema.Message{{Role: schema.RoleUser, Text: text("pay more")}},
		}},
		{schema.CtlKey(1), &schema.Ctl{Act: schema.CtlOwn, Instance: "orch-1", Seq: 7}},
		{schema.SayKey(1), &schema.Say{Role: schema.RoleUser, Text: text("pay it"), Source: "call:above/2.1"}},
		{schema.TurnKey(1), &schema.Turn{N: 1, Own: 1, Model: "m-1", Text: text("I will"), Calls: calls(), Usage: schema.Usage{Input: 10, Output: 2}, Items: &schema.Items{Provider: "p", Data: []byte(secret)}}},
		{schema.SentKey(1, 1), &schema.Sent{Calls: []schema.SentCall{{Index: 0, Seq: 11, DeadlineMS: 5000}}}},
		{schema.AskKey(1, 2, 1), ask},
		{schema.BackKey(1, 0, "files", 11, 1), &schema.Back{Instance: "worker-1", Reason: "the worker is shutting down"}},
		{schema.BeginKey(1, 0, "files"), &schema.Begin{Instance: "worker-2", Delivery: 2, Seq: 11}},
		{schema.ResultKey(1, 0, "files"), &schema.Result{Run: run, Turn: 1, OK: true, Output: text("content"), Worker: "worker-2", Delivery: 2, StartedMS: 1005, EndedMS: 1007}},
		{schema.ViewKey(1, 0), &schema.View{Text: text("less of it")}},
		{schema.ResultKey(1, 1, schema.QueueNone), &schema.Result{Run: run, Turn: 1, Index: 1, Output: text("DENIED: "), Error: &schema.Error{Type: schema.Denied, Message: text("no")}}},
		{schema.VerdictKey(1, 2, 1), verdict},
		{schema.SentKey(1, 2), &schema.Sent{Calls: []schema.SentCall{{Index: 2, Seq: 12, DeadlineMS: 5000}}}},
		{schema.BeginKey(1, 2, "bank"), &schema.Begin{Instance: "worker-3", Delivery: 1, Seq: 12}},
		{schema.ResultKey(1, 2, "bank"), &schema.Result{Run: run, Turn: 1, Index: 2, Output: text("TOOL_ERROR: "), Error: &schema.Error{Type: schema.ToolFailed, Message: text("broke")}, Worker: "worker-3", Delivery: 1, StartedMS: 1012, EndedMS: 1013}},
		{schema.FoldKey(1), &schema.Fold{N: 1, Own: 1, Strategy: schema.CompactSummary, Text: text("it was so"), Model: "m-1"}},
		{schema.TurnKey(2), &schema.Turn{N: 2, Own: 1, Model: "m-1", Text: text("done")}},
		{schema.AnswerKey(1), &schema.Answer{Text: text("done"), Reason: schema.ReasonDone, Error: text("nothing"), Turn: 2, Say: 1}},
		{schema.CtlKey(2), &schema.Ctl{Act: schema.CtlStop, Instance: "orch-2", Why: "enough"}},
		{schema.CloseKey(), &schema.Close{State: "stopped", Turns: 2, Calls: 3}},
	}
}

func has(problems []audit.Problem, part string) bool {
	for _, p := range problems {
		if strings.Contains(p.String(), part) {
			return true
		}
	}
	return false
}
