package audit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// at returns where the fact under key stands.
func at(list []written, key schema.Key) int {
	return slices.IndexFunc(list, func(w written) bool { return w.key == key })
}

// without leaves facts out.
func without(keys ...schema.Key) func([]written) []written {
	return func(list []written) []written {
		return slices.DeleteFunc(list, func(w written) bool { return slices.Contains(keys, w.key) })
	}
}

// instead puts another payload under a key.
func instead(key schema.Key, p schema.Encodable) func([]written) []written {
	return func(list []written) []written {
		list[at(list, key)].p = p
		return list
	}
}

// more adds facts at the end.
func more(facts ...written) func([]written) []written {
	return func(list []written) []written { return append(list, facts...) }
}

// before moves a fact.
func before(key, other schema.Key) func([]written) []written {
	return func(list []written) []written {
		w := list[at(list, key)]
		list = without(key)(list)
		return slices.Insert(list, at(list, other), w)
	}
}

// open adds a fact right before close.
func open(w written) func([]written) []written {
	return func(list []written) []written { return slices.Insert(list, at(list, schema.CloseKey()), w) }
}

func TestCheck(t *testing.T) {
	t.Parallel()
	ask := func(change func(*schema.Ask)) *schema.Ask {
		a, _ := question()
		change(a)
		return a
	}
	verdict := func(change func(*schema.Verdict)) *schema.Verdict {
		_, v := question()
		change(v)
		return v
	}
	elsewhere := written{schema.ResultKey(1, 0, "shell"), &schema.Result{Run: run, Turn: 1}}
	askKey, verdictKey, beginKey := schema.AskKey(1, 2, 1), schema.VerdictKey(1, 2, 1), schema.BeginKey(1, 2, "bank")
	for name, c := range map[string]struct {
		change func([]written) []written
		want   string
	}{
		"no open": {without(schema.OpenKey()), "open: it is missing"},
		"the only say is gone": {func(list []written) []written {
			list[at(list, schema.TurnKey(1))].p = &schema.Turn{N: 1, Own: 1, Say: 1, Calls: calls()}
			return without(schema.SayKey(1))(list)
		}, "say.1: it is missing, though turn.1 names say.1"},
		"all slots are gone":    {without(schema.CtlKey(1), schema.CtlKey(2)), "ctl.1: it is missing, though turn.1 names ctl.1"},
		"the last turn is gone": {without(schema.TurnKey(2)), "turn.2: it is missing, though answer.1 names turn.2"},
		"the only answer is gone": {func(list []written) []written {
			list[at(list, schema.CloseKey())].p = &schema.Close{State: "done", Turns: 2, Calls: 3}
			return without(schema.AnswerKey(1))(list)
		}, `answer.1: it is missing, though the run is closed as "done"`},
		"a turn is gone":        {without(schema.TurnKey(1)), "turn.1: it is missing, though turn.2 is there"},
		"calls of no turn":      {without(schema.TurnKey(1)), "result.1.0.files (8): no turn holds call 1.0"},
		"asked of other bytes":  {instead(askKey, ask(func(a *schema.Ask) { a.Args = schema.Digest([]byte("{}")) })), "ask.1.2.1 (6): the digest of the arguments is"},
		"asked of another tool": {instead(askKey, ask(func(a *schema.Ask) { a.Tool = "look" })), `ask.1.2.1 (6): the tool is "look", that of the call is "pay"`},
		"bound values swapped":  {instead(askKey, ask(func(a *schema.Ask) { a.Bound = "b" })), "the digest of the bound values"},
		"the schema changed":    {instead(askKey, ask(func(a *schema.Ask) { a.Schema = "d4" })), "the digest of the schema"},
		"edited by nobody":      {instead(askKey, ask(func(a *schema.Ask) { a.Edited, a.Args = `{}`, schema.Digest([]byte("{}")) })), "no verdict before it wants these arguments"},
		"another call approved": {instead(verdictKey, verdict(func(v *schema.Verdict) { v.Digest = "x" })), "verdict.1.2.1 (12): it approves another call"},
		"approved too late":     {instead(verdictKey, verdict(func(v *schema.Verdict) { v.AtMS = 9000 })), "verdict.1.2.1 (12): it approves after"},
		"nobody had asked":      {without(askKey), "verdict.1.2.1 (11): nobody had asked"},
		"ran unasked":           {without(askKey), "begin.1.2.bank (13): the call ran and nobody had been asked"},
		"ran unapproved":        {without(verdictKey), "begin.1.2.bank (13): the call ran before anybody had approved it"},
		"published unapproved":  {without(verdictKey), "sent.1.2 (12): the call ran before"},
		"ran before approval":   {before(beginKey, verdictKey), "begin.1.2.bank (12): the call ran before anybody had approved it"},
		"ran though refused":    {instead(verdictKey, verdict(func(v *schema.Verdict) { v.Decision = schema.VerdictDeny })), "begin.1.2.bank (14): the call ran though the verdict does not approve it"},
		"asked again and ran": {func(list []written) []written {
			return slices.Insert(list, at(list, beginKey), written{schema.AskKey(1, 2, 2), ask(func(*schema.Ask) {})})
		}, "begin.1.2.bank (15): the call ran before"},
		"ran though denied":      {more(written{schema.BeginKey(1, 1, schema.QueueNone), &schema.Begin{Instance: "w"}}), `the decision about the call was "deny"`},
		"two results":            {open(elsewhere), "it is one of 2 results of call 1.0"},
		"on another queue":       {open(elsewhere), `the turn gives the call to the queue "files"`},
		"no result":              {without(schema.ResultKey(1, 0, "files")), "result.1.0.files: it is missing, though the run is closed"},
		"ran before its turn":    {before(schema.BeginKey(1, 0, "files"), schema.TurnKey(1)), "begin.1.0.files (4): it is older than the turn"},
		"a view before its turn": {before(schema.ViewKey(1, 0), schema.TurnKey(1)), "view.1.0 (4): it is older than the turn"},
		"a view of no call":      {open(written{schema.ViewKey(1, 9), &schema.View{}}), "no turn holds call 1.9"},
		"said after close":       {more(written{schema.SayKey(2), &schema.Say{}}), "say.2 (21): it was written after close"},
		"a wide gap":             {more(written{schema.SayKey(1<<31 - 1), &schema.Say{}}), "say.2: it is missing, and what follows it up to say.2147483646, though say.2147483647 is there"},
		"close miscounts":        {instead(schema.CloseKey(), &schema.Close{State: "done", Turns: 3, Calls: 3}), "close (20): it counts 3 turns and 3 calls, there are 2 and 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := c.change(whole())
			trail, _ := apply(stored(t, list))
			if p := trail.Check(); !has(p, c.want) {
				t.Errorf("want %q among %v", c.want, p)
			}
		})
	}
}

// TestCheckLateFacts: what may come after close is no problem.
func TestCheckLateFacts(t *testing.T) {
	t.Parallel()
	list := append(whole(),
		written{schema.CtlKey(3), &schema.Ctl{Act: schema.CtlOwn}},
		written{schema.BackKey(1, 0, "files", 11, 3), &schema.Back{}},
		written{schema.SentKey(1, 3), &schema.Sent{Calls: []schema.SentCall{{Index: 0, Seq: 13}}}},
	)
	trail, _ := apply(stored(t, list))
	if p := trail.Check(); len(p) > 0 {
		t.Errorf("problems: %v", p)
	}
}

// TestCheckEdited: a verdict with other arguments, asked about anew.
func TestCheckEdited(t *testing.T) {
	t.Parallel()
	list := whole()
	first, v1 := question()
	v1.Args = `{ "amount": 3 }`
	c := calls()[2]
	second := schema.NewAsk(&c, c.Decision, `{"amount":3}`)
	second.ExpiresMS, second.Schema = first.ExpiresMS, "d4" // the tool has changed too
	v2 := &schema.Verdict{Decision: schema.VerdictApprove, Digest: second.Digest(run, schema.AskKey(1, 2, 2)), AtMS: 1010}
	i := at(list, schema.VerdictKey(1, 2, 1))
	list[i].p = v1
	list = slices.Insert(list, i+1, written{schema.AskKey(1, 2, 2), second}, written{schema.VerdictKey(1, 2, 2), v2})
	trail, records := apply(stored(t, list))
	if p := trail.Check(); len(p) > 0 {
		t.Errorf("problems: %v", p)
	}
	for _, r := range records {
		if r.Fact == "verdict.1.2.1" && r.Args == "" {
			t.Errorf("the record of an edit does not say so: %+v", r)
		}
	}
}

// TestCheckACall: a call outside any run has no turn.
func TestCheckACall(t *testing.T) {
	t.Parallel()
	list := []written{
		{schema.OpenKey(), &schema.Open{Kind: schema.RunCall}},
		{schema.BeginKey(1, 0, "files"), &schema.Begin{Instance: "w"}},
		{schema.ResultKey(1, 0, "files"), &schema.Result{Run: run, Turn: 1, OK: true, StartedMS: 1}},
		{schema.CloseKey(), &schema.Close{State: "done", Calls: 1}},
	}
	trail, _ := apply(stored(t, list))
	if p := trail.Check(); len(p) > 0 {
		t.Errorf("problems: %v", p)
	}
	trail, _ = apply(stored(t, slices.Delete(list, 2, 3)))
	if p := trail.Check(); !has(p, "result.1.0.files: it is missing") {
		t.Errorf("problems: %v", p)
	}
}

// TestCheckACallWithTurns: whoever writes a turn into the run of a call outside any run cannot end the check.
func TestCheckACallWithTurns(t *testing.T) {
	t.Parallel()
	list := []written{
		{schema.OpenKey(), &schema.Open{Kind: schema.RunCall}},
		{schema.TurnKey(1), &schema.Turn{N: 1, Calls: calls()}},
		{schema.ResultKey(1, 0, "files"), &schema.Result{Run: run, Turn: 1, OK: true, StartedMS: 1}},
		{schema.CloseKey(), &schema.Close{State: "done", Calls: 1}},
	}
	trail, _ := apply(stored(t, list))
	if p := trail.Check(); !has(p, "turn.1 (2): a call outside any run has no turns") {
		t.Errorf("problems: %v", p)
	}
}

// TestCheckBackdated: whoever approves says when; the server says when that was written.
func TestCheckBackdated(t *testing.T) {
	t.Parallel()
	facts := stored(t, whole())
	facts[at(whole(), schema.VerdictKey(1, 2, 1))].Time = time.UnixMilli(9000).Add(time.Hour)
	trail, _ := apply(facts)
	if p := trail.Check(); len(p) != 1 || !has(p, "verdict.1.2.1 (12): it says that it approves in time, and was written after") {
		t.Errorf("problems: %v", p)
	}
}

// TestCheckFarQuestion: a stranger chooses the number of a question, and the check does not count up to it.
func TestCheckFarQuestion(t *testing.T) {
	t.Parallel()
	c := calls()[2]
	list := open(written{schema.AskKey(1, 2, 1<<31-1), schema.NewAsk(&c, c.Decision, `{"amount":3}`)})(whole())
	trail, _ := apply(stored(t, list))
	began := time.Now()
	if p := trail.Check(); !has(p, "no verdict before it wants these arguments") || time.Since(began) > 2*time.Second {
		t.Errorf("after %v: %v", time.Since(began), p)
	}
}
