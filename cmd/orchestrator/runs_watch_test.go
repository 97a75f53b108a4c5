package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/schema"
)

// TestWatchSaysEveryFact: each kind of fact is said, and none is taken for one that cannot be read.
func TestWatchSaysEveryFact(t *testing.T) {
	t.Parallel()
	w := watcher{tools: map[[2]int]string{}}
	call := schema.TurnCall{Label: "a", Tool: "pay", Queue: "bank", Args: `{"n":1}`, Decision: schema.Decision{Action: schema.ActionAsk, Rule: "money"}}
	expires := int64(1_790_000_000_000)
	for _, f := range []struct {
		key  schema.Key
		fact schema.Encodable
		want string // with one space for several
	}{
		{schema.OpenKey(), &schema.Open{Kind: schema.RunAgent, Agent: &schema.AgentSpec{ID: "clerk"}}, "open agent clerk"},
		{schema.CtlKey(1), &schema.Ctl{Act: schema.CtlOwn, Instance: "o-1"}, "ctl.1 owner o-1"},
		{schema.CtlKey(2), &schema.Ctl{Act: schema.CtlStop, Why: "enough"}, "ctl.2 stop: enough"},
		{schema.SayKey(1), &schema.Say{Role: schema.RoleUser, Text: "go"}, "say.1 user: go"},
		{schema.TurnKey(1), &schema.Turn{N: 1, Calls: []schema.TurnCall{call}}, `turn.1 1 call call 1.0 pay a, ask money: {"n":1}`},
		{schema.SentKey(1, 1), &schema.Sent{}, ""},
		{schema.AskKey(1, 0, 1), &schema.Ask{Tool: "pay", Queue: "bank", Rule: "money", Text: "it is\x1b[2J much", ExpiresMS: expires}, "ask 1.0 pay waits for a person until " + clock(expires) + ": money it is much"},
		{schema.VerdictKey(1, 0, 1), &schema.Verdict{Decision: schema.VerdictApprove, By: "ada", Why: "fine", Args: `{"n":2}`}, `verdict 1.0 pay approve by ada: fine, with the arguments {"n":2}`},
		{schema.VerdictKey(1, 0, 2), &schema.Verdict{Decision: schema.VerdictExpired}, "verdict 1.0 pay expired"},
		{schema.BeginKey(1, 0, "bank"), &schema.Begin{Instance: "w-123456", Delivery: 2}, "begin 1.0 pay at worker …123456, delivery 2"},
		{schema.BackKey(1, 0, "bank", 7, 1), &schema.Back{Instance: "w-123456", Reason: "full"}, "back 1.0 pay by worker …123456, not started: full"},
		{schema.ResultKey(1, 0, "bank"), &schema.Result{OK: true, Output: "paid"}, "result 1.0 pay ok: paid"},
		{schema.ViewKey(1, 0), &schema.View{Text: "withheld"}, "view 1.0 pay a guard changed what the memory shows: withheld"},
		{schema.FoldKey(1), &schema.Fold{N: 1}, "fold.1 the turns up to 1 are compacted"},
		{schema.AnswerKey(1), &schema.Answer{Reason: schema.ReasonDone, Text: "done"}, "answer.1 done: done"},
		{schema.CloseKey(), &schema.Close{State: "done", Turns: 1, Calls: 1}, "close done, 1 turn, 1 call"},
	} {
		data, err := schema.Encode(f.fact)
		if err != nil {
			t.Fatal(err)
		}
		got := w.lines(schema.Fact{Run: "r", Key: f.key, Data: data})
		if diff := cmp.Diff(f.want, strings.Join(strings.Fields(strings.Join(got, " ")), " ")); diff != "" {
			t.Errorf("%s: %s", f.key, diff)
		}
		if payload(schema.Fact{Key: f.key, Data: data}) == nil {
			t.Errorf("%s has no payload as JSON", f.key)
		}
	}
	if got := w.lines(schema.Fact{Key: schema.AnswerKey(2), Data: []byte("x")}); len(got) != 1 || !strings.Contains(got[0], "(it cannot be read)") {
		t.Errorf("%q", got)
	}
}
