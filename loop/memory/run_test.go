package memory_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/schema"
)

func TestMessages(t *testing.T) {
	t.Parallel()
	put := func(m *memory.Run, key schema.Key, p schema.Encodable) { m.Put(key, p) }
	user := func(text, source string) *schema.Say {
		return &schema.Say{Role: schema.RoleUser, Text: text, Source: source}
	}
	m := memory.New()
	put(m, schema.OpenKey(), &schema.Open{Agent: &schema.AgentSpec{Instructions: "Be brief."}})
	put(m, schema.SayKey(1), user("one", "a"))
	put(m, schema.SayKey(2), user("one", "a"))
	put(m, schema.SayKey(3), user("two", "b"))
	put(m, schema.SayKey(4), user("three", ""))
	put(m, schema.SayKey(6), user("behind a gap", ""))
	items := &schema.Items{Provider: "p", Data: []byte("x")}
	put(m, schema.TurnKey(1), &schema.Turn{Say: 2, Text: "hm", Items: items, Calls: []schema.TurnCall{call("l0", "a"), call("l1", " ")}})
	put(m, schema.ResultKey(1, 1, "q"), &schema.Result{OK: false})
	put(m, schema.ResultKey(1, 0, "q"), &schema.Result{OK: true, Output: "secret"})
	put(m, schema.ResultKey(1, 0, "other"), &schema.Result{OK: true, Output: "of another queue"})
	put(m, schema.ViewKey(1, 0), &schema.View{Text: "shown"})
	put(m, schema.TurnKey(2), &schema.Turn{Say: 3, Calls: []schema.TurnCall{call("l0", "a")}})
	want := []schema.Message{
		{Role: "system", Text: "Be brief."},
		{Role: "user", Text: "one"},
		{Role: "assistant", Text: "hm", Items: items, Calls: []schema.MessageCall{{Label: "l0", Name: "a", Args: "{}"}, {Label: "l1", Name: "tool", Args: "{}"}}},
		{Role: "tool", Text: "shown", Label: "l0", Name: "a"},
		{Role: "tool", Text: `TOOL_ERROR: {"errorType":"ToolFailed","error":"ToolFailed","tool":" ","callId":"l1"}`, Label: "l1", Name: "tool", Error: true},
		{Role: "user", Text: "two"},
	}
	if diff := cmp.Diff(want, m.Messages()); diff != "" {
		t.Error("with an open call:", diff)
	}
	put(m, schema.ResultKey(2, 0, "q"), &schema.Result{OK: true, Output: "second"})
	want = append(want,
		schema.Message{Role: "assistant", Calls: []schema.MessageCall{{Label: "l0", Name: "a", Args: "{}"}}},
		schema.Message{Role: "tool", Text: "second", Label: "l0", Name: "a"},
		schema.Message{Role: "user", Text: "three"})
	if diff := cmp.Diff(want, m.Messages()); diff != "" {
		t.Error("complete:", diff)
	}
}

func TestFirstFactUnderAKeyStays(t *testing.T) {
	t.Parallel()
	m := memory.New()
	m.Put(schema.SayKey(1), &schema.Say{Role: "user", Text: "first"})
	m.Put(schema.SayKey(1), &schema.Say{Role: "user", Text: "second"})
	if got := m.Say(1).Text; got != "first" {
		t.Errorf("text %q", got)
	}
}

func TestUndecodableFacts(t *testing.T) {
	t.Parallel()
	m := fold(t, fact(t, schema.TurnKey(1), &schema.Turn{N: 1, Say: 1, Calls: []schema.TurnCall{call("l", "a")}}))
	for _, key := range []schema.Key{schema.ResultKey(1, 0, "q"), schema.SayKey(1), schema.AnswerKey(1)} {
		err := m.Apply(schema.Fact{Run: "r", Key: key, Data: []byte{0xdd, 0xff, 0xff, 0xff, 0xff}})
		if !errors.Is(err, schema.ErrPayload) || !strings.Contains(err.Error(), key.String()) {
			t.Errorf("%s: error %v", key, err)
		}
	}
	if err := m.Apply(schema.Fact{Key: schema.BeginKey(1, 0, "q"), Data: []byte("junk")}); err != nil {
		t.Errorf("a kind that memory does not use: %v", err)
	}
	msgs := m.Messages()
	if len(msgs) != 2 || !msgs[1].Error || !strings.Contains(msgs[1].Text, "OutcomeUnknown") {
		t.Errorf("messages %+v", msgs)
	}
	if m.Says() != 1 || m.Answers() != 0 || m.Pending() {
		t.Errorf("says %d, answers %d, pending %t", m.Says(), m.Answers(), m.Pending())
	}
}

// TestD37ResultOfAnotherCallIsNotCredited: the subject decides whose result it is, and a slot that no call has is
// nobody's.
func TestD37ResultOfAnotherCallIsNotCredited(t *testing.T) {
	t.Parallel()
	_, lying := result(7, 3, "q", "mine")
	lying.Run = "another"
	key, stray := result(1, 9, "q", "nobody's")
	m := fold(t,
		fact(t, schema.TurnKey(1), &schema.Turn{N: 1, Calls: []schema.TurnCall{call("l", "a"), call("m", "b")}}),
		fact(t, schema.ResultKey(1, 0, "q"), lying),
		fact(t, key, stray))
	if r := m.Result(1, 0); r.Run != "r" || r.Turn != 1 || r.Index != 0 {
		t.Errorf("result %+v", r)
	}
	if diff := cmp.Diff([]int{1}, m.OpenCalls(1)); diff != "" {
		t.Error(diff)
	}
	if m.Result(1, 9) != nil || m.Result(7, 3) != nil {
		t.Error("a result without a call is there")
	}
}

func TestStrangersRolesDoNotBreakPairing(t *testing.T) {
	t.Parallel()
	m := fold(t, schema.Fact{Run: "r", Key: schema.SayKey(1), Data: []byte(`{"v":1,"role":"tool","text":"hi"}`)})
	if diff := cmp.Diff([]schema.Message{{Role: "user", Text: "hi"}}, m.Messages()); diff != "" {
		t.Error(diff)
	}
}

func TestPending(t *testing.T) {
	t.Parallel()
	m := memory.New()
	say := func(k int, role, source string) { m.Put(schema.SayKey(k), &schema.Say{Role: role, Source: source}) }
	steps := []struct {
		do   func()
		want bool
	}{
		{func() {}, false},
		{func() { say(1, "user", "a") }, true},
		{func() { m.Put(schema.AnswerKey(1), &schema.Answer{Say: 1}) }, false},
		{func() { say(2, "user", "a") }, false},
		{func() { say(3, "system", "b") }, false},
		{func() { say(4, "user", "") }, true},
		{func() { m.Put(schema.AnswerKey(2), &schema.Answer{Say: 4}) }, false},
	}
	for i, s := range steps {
		s.do()
		if got := m.Pending(); got != s.want {
			t.Errorf("step %d: pending %t", i, got)
		}
	}
}

// The subject decides which turn it is: what is asked, sent and answered about its calls goes by that number.
func TestTurnThatNamesAnother(t *testing.T) {
	t.Parallel()
	data, err := schema.Encode(&schema.Turn{N: 77})
	if err != nil {
		t.Fatal(err)
	}
	m := memory.New()
	if err := m.Apply(schema.Fact{Run: "r", Key: schema.TurnKey(1), Data: data}); err != nil || m.Turn(1).N != 1 {
		t.Errorf("%+v, %v", m.Turn(1), err)
	}
}
