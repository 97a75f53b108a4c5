package memory_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/schema"
)

// told is a run of two turns that goes on with before, the first of them with a call.
func told(t *testing.T, before ...schema.Message) *memory.Run {
	t.Helper()
	m := memory.New()
	facts := []schema.Fact{
		fact(t, schema.OpenKey(), &schema.Open{Agent: &schema.AgentSpec{Instructions: "Be brief."}, Before: before}),
		fact(t, schema.SayKey(1), &schema.Say{Role: schema.RoleUser, Text: "look", Source: "call:r.1.0"}),
		fact(t, schema.TurnKey(1), &schema.Turn{N: 1, Say: 1, Calls: []schema.TurnCall{call("tool_step_1_0", "cat"), call("own", "cat")}}),
		fact(t, schema.ResultKey(1, 0, "q"), &schema.Result{OK: true, Blob: "x", Output: "a" + schema.OmittedMark(&schema.Call{Turn: 1}, 1, 5, 10, 10) + "z"}),
		fact(t, schema.ResultKey(1, 1, "q"), &schema.Result{OK: true, Output: "b"}),
		fact(t, schema.SayKey(2), &schema.Say{Role: schema.RoleSystem, Text: "The limit of 1 steps is reached.", Source: schema.SourceLimit + "max_steps:1"}),
		fact(t, schema.TurnKey(2), &schema.Turn{N: 2, Say: 2, Text: "seen"}),
		fact(t, schema.AnswerKey(1), &schema.Answer{Turn: 2, Say: 2, Text: "seen"}),
		fact(t, schema.SayKey(3), &schema.Say{Role: schema.RoleUser, Text: "too late"}),
	}
	for _, f := range facts {
		if err := m.Apply(f); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// TestConversation: what is handed on is the conversation as it was, but for what holds only in its own run: the
// instructions, limits that were reached, labels that are made here, and how an output is read further.
func TestConversation(t *testing.T) {
	t.Parallel()
	want := []schema.Message{
		{Role: schema.RoleUser, Text: "look"},
		{Role: schema.RoleAssistant, Calls: []schema.MessageCall{{Label: "earlier_1_0", Name: "cat", Args: "{}"}, {Label: "own", Name: "cat", Args: "{}"}}},
		{Role: schema.RoleTool, Text: "a\n[... 5 of 10 bytes left out here; they cannot be read any more ...]\nz", Label: "earlier_1_0", Name: "cat"},
		{Role: schema.RoleTool, Text: "b", Label: "own", Name: "cat"},
		{Role: schema.RoleAssistant, Text: "seen"},
	}
	if diff := cmp.Diff(want, told(t).Conversation(0)); diff != "" {
		t.Error(diff)
	}
	next := told(t, want...)
	if msgs := next.Messages(); msgs[0].Role != schema.RoleSystem || !cmp.Equal(msgs[1:1+len(want)], want) || msgs[1+len(want)].Text != "look" {
		t.Errorf("the next run begins with %+v", msgs)
	}
	labels := map[string]bool{}
	for _, m := range next.Conversation(0) {
		for _, c := range m.Calls {
			if labels[c.Label] && c.Label != "own" {
				t.Errorf("label %s stands there twice", c.Label)
			}
			labels[c.Label] = true
		}
	}
	if next.Rounds() != 4 {
		t.Errorf("%d turns in the prompt", next.Rounds())
	}
}

// TestConversationIsCut: of one that is too long the end is kept, from a whole round on.
func TestConversationIsCut(t *testing.T) {
	t.Parallel()
	whole := memory.Estimate(told(t).Conversation(0))
	cut := "[The beginning of this conversation was left out to save space.]"
	for tokens, want := range map[int64][]string{
		whole:     {"look", "", "a", "b", "seen"},
		whole - 1: {cut, "seen"},
		30:        {cut, "seen"},
		1:         {cut},
	} {
		var got []string
		for _, m := range told(t).Conversation(tokens) {
			text, _, _ := strings.Cut(m.Text, "\n")
			got = append(got, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d tokens: %s", tokens, diff)
		}
	}
}

// TestFoldOfWhatCameBefore: what a run goes on with is compacted as one part, before or with its first turns.
func TestFoldOfWhatCameBefore(t *testing.T) {
	t.Parallel()
	before := []schema.Message{{Role: schema.RoleUser, Text: strings.Repeat("long ", 100)}, {Role: schema.RoleAssistant, Text: "so it was"}}
	m := told(t, before...)
	f := m.Plan(1, 4, 200)
	if f == nil || f.N != 0 || f.Say != 0 {
		t.Fatalf("fold %+v", f)
	}
	if text := m.Transcript(0, 4000); !strings.Contains(text, "assistant: so it was") || strings.Contains(text, "look") {
		t.Errorf("to be summarised: %q", text)
	}
	f.Strategy, f.Text = schema.CompactSummary, "It was so."
	m.Put(schema.FoldKey(0), f)
	if msgs := m.Messages(); msgs[1].Text != "[The tasks before this one, summarised. What they did is done; go on from there.]\n\nIt was so." || msgs[2].Text != "look" {
		t.Errorf("memory %+v", msgs)
	}
	if m.Rounds() != 2 || m.Plan(1, 4, 200) != nil {
		t.Errorf("%d turns, %+v", m.Rounds(), m.Plan(1, 4, 200))
	}
	m.Put(schema.FoldKey(1), &schema.Fold{N: 1, Turns: 2, Strategy: schema.CompactWindow})
	if msgs := m.Messages(); msgs[1].Text != "[The tasks before this one, and turns 1 to 1 of this conversation were left out to save space.]" {
		t.Errorf("memory %+v", msgs)
	}
	if f := told(t).Plan(1, 4, 0); f != nil && f.N == 0 {
		t.Errorf("fold %+v of nothing", f)
	}
}

// TestBrokenConversation: one in which calls and results are no pairs is left out.
func TestBrokenConversation(t *testing.T) {
	t.Parallel()
	for name, before := range map[string][]schema.Message{
		"result without call": {{Role: schema.RoleTool, Label: "a"}},
		"call without result": {{Role: schema.RoleAssistant, Calls: []schema.MessageCall{{Label: "a"}}}},
		"another's result":    {{Role: schema.RoleAssistant, Calls: []schema.MessageCall{{Label: "a"}}}, {Role: schema.RoleTool, Label: "b"}},
		"said between":        {{Role: schema.RoleAssistant, Calls: []schema.MessageCall{{Label: "a"}}}, {Role: schema.RoleUser}, {Role: schema.RoleTool, Label: "a"}},
	} {
		if msgs := told(t, before...).Messages(); msgs[1].Text != "look" {
			t.Errorf("%s: %+v", name, msgs)
		}
	}
}
