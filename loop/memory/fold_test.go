package memory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/schema"
)

// life plays a run as its owner does and keeps its facts.
type life struct {
	*rapid.T
	run     *memory.Run
	facts   []schema.Fact
	says    int
	answers int
}

func (l *life) put(key schema.Key, p schema.Encodable) {
	l.facts = append(l.facts, fact(l, key, p))
	l.run.Put(key, p)
}

func (l *life) text(label string) string {
	return rapid.SampledFrom([]string{"", "ok", "grüße", strings.Repeat("long ", 60)}).Draw(l.T, label)
}

// say adds a message; some repeat a source and are no news.
func (l *life) say() {
	l.says++
	role := rapid.SampledFrom([]string{schema.RoleUser, schema.RoleUser, schema.RoleSystem}).Draw(l.T, "role")
	source := rapid.SampledFrom([]string{"", fmt.Sprint(l.says), "again"}).Draw(l.T, "source")
	l.put(schema.SayKey(l.says), &schema.Say{Role: role, Text: fmt.Sprintf("say %d %s", l.says, l.text("said")), Source: source})
}

// turn adds a turn with parallel calls, whose results come in any order; some fail. open keeps the last call open.
func (l *life) turn(open bool) {
	n := l.run.Turns() + 1
	t := &schema.Turn{N: n, Say: l.says, Text: l.text("spoken")}
	if f := l.run.Fold(); f != nil {
		t.Fold = f.N
	}
	calls := rapid.IntRange(0, 4).Draw(l.T, "calls")
	if open {
		calls++
	}
	for i := range calls {
		t.Calls = append(t.Calls, call(fmt.Sprint("l", i), "tool"))
	}
	l.put(schema.TurnKey(n), t)
	slots := make([]int, calls)
	for i := range slots {
		slots[i] = i
	}
	for _, i := range rapid.Permutation(slots).Draw(l.T, "order") {
		if open && i == calls-1 {
			continue
		}
		key, r := result(n, i, "q", fmt.Sprintf("result %d.%d %s", n, i, l.text("output")))
		if rapid.IntRange(0, 3).Draw(l.T, "fails") == 0 {
			r.OK, r.Error, r.Output = false, &schema.Error{Type: schema.Timeout, Message: "30 s"}, ""
		}
		l.put(key, r)
	}
}

func (l *life) answer() {
	l.answers++
	said := 0
	if t := l.run.Turn(l.run.Turns()); t != nil {
		said = t.Say
	}
	l.put(schema.AnswerKey(l.answers), &schema.Answer{Turn: l.run.Turns(), Say: said, Reason: schema.ReasonDone})
}

// compact folds as the loop does, and checks what it promises.
func (l *life) compact() {
	before, preserve := l.run.Fold(), rapid.IntRange(1, 6).Draw(l.T, "preserve")
	tokens := rapid.Int64Range(0, 400).Draw(l.T, "tokens")
	least := rapid.IntRange(0, 1).Draw(l.T, "least")
	f := l.run.Plan(least, preserve, tokens)
	if f == nil {
		return
	}
	if before != nil && (f.N <= before.N || f.Say < before.Say) {
		l.Fatalf("fold of turn %d and say %d after one of %d and %d", f.N, f.Say, before.N, before.Say)
	}
	f.Strategy = rapid.SampledFrom([]string{schema.CompactWindow, schema.CompactSummary}).Draw(l.T, "strategy")
	if f.Strategy == schema.CompactSummary {
		f.Text = "what was done"
	}
	l.put(schema.FoldKey(f.N), f)
	kept := l.run.Turns() - f.N
	if n := l.run.Turns(); len(l.run.OpenCalls(n)) > 0 {
		kept-- // it is not in the prompt yet
	}
	if kept > preserve {
		l.Fatalf("%d turns are kept, wanted %d", kept, preserve)
	}
	if got := memory.Estimate(l.run.Messages()); kept > least && got > tokens+12 { // 12: the summary, and the words around it
		l.Fatalf("%d tokens with %d turns kept, wanted %d", got, kept, tokens)
	}
}

// check looks at the memory after any step.
func (l *life) check() {
	msgs := l.run.Messages()
	checkPairs(l, msgs)
	if msgs[0].Role != schema.RoleSystem || msgs[0].Text != "Be brief." {
		l.Fatalf("the memory begins with %+v", msgs[0])
	}
	if l.run.Fold() != nil && msgs[1].Role != schema.RoleUser {
		l.Fatalf("the compacted memory begins with %+v", msgs[1])
	}
	if newest := lastUser(l.run.History()); newest != "" && newest != lastUser(msgs) {
		l.Fatalf("the newest message is %q, the memory has %q", newest, lastUser(msgs))
	}
	again := memory.New()
	for _, f := range rapid.Permutation(l.facts).Draw(l.T, "shuffled") {
		if err := again.Apply(f); err != nil {
			l.Fatal(err)
		}
	}
	if diff := cmp.Diff(msgs, again.Messages()); diff != "" {
		l.Fatal("resumed memory differs:", diff)
	}
	tokens := rapid.Int64Range(0, 600).Draw(l.T, "handed on")
	handed := l.run.Conversation(tokens)
	checkPairs(l, handed)
	if got := memory.Estimate(handed); tokens > 40 && got > tokens {
		l.Fatalf("%d tokens are handed on, wanted %d", got, tokens)
	}
}

func lastUser(msgs []schema.Message) string {
	for _, m := range slices.Backward(msgs) {
		if m.Role == schema.RoleUser && strings.HasPrefix(m.Text, "say ") {
			return m.Text
		}
	}
	return ""
}

// before is what another run hands on, sometimes nothing.
func (l *life) before() (msgs []schema.Message) {
	for range rapid.IntRange(0, 3).Draw(l.T, "before") {
		msgs = append(msgs, schema.Message{Role: schema.RoleUser, Text: "before " + l.text("told")})
		m := schema.Message{Role: schema.RoleAssistant, Text: l.text("answered")}
		var results []schema.Message
		for i := range rapid.IntRange(0, 2).Draw(l.T, "called") {
			label := fmt.Sprintf("tool_step_1_%d", i)
			m.Calls = append(m.Calls, schema.MessageCall{Label: label, Name: "tool", Args: "{}"})
			results = append(results, schema.Message{Role: schema.RoleTool, Text: "fine", Label: label, Name: "tool"})
		}
		msgs = append(append(msgs, m), results...)
	}
	return msgs
}

// drawLife plays a run with exchanges, and folds between any two turns.
func drawLife(t *rapid.T, each func(*life)) *life {
	l := &life{T: t, run: memory.New()}
	l.put(schema.OpenKey(), &schema.Open{Agent: &schema.AgentSpec{Instructions: "Be brief."}, Before: l.before()})
	for range rapid.IntRange(1, 20).Draw(t, "steps") {
		switch rapid.IntRange(0, 7).Draw(t, "step") {
		case 0:
			l.say()
		case 1:
			l.answer()
		case 2, 3:
			l.compact()
		default:
			l.turn(false)
		}
		each(l)
	}
	return l
}

// TestD14CompactedMemoryIsWhole: whatever happened, and however often it is compacted, the memory has whole rounds, keeps
// what it must, fits, and is the same for who resumes the run.
func TestD14CompactedMemoryIsWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { drawLife(t, (*life).check) })
}

// TestD14OpenCallsAreKept: a turn with an open call is not compacted, and comes with its result.
func TestD14OpenCallsAreKept(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawLife(t, func(*life) {})
		l.turn(true)
		l.compact()
		n := l.run.Turns()
		if f := l.run.Fold(); f != nil && f.N >= n {
			t.Fatalf("turn %d is compacted by fold %d", n, f.N)
		}
		i := l.run.OpenCalls(n)[0]
		l.put(result(n, i, "q", "late"))
		msgs := l.run.Messages()
		checkPairs(t, msgs)
		if !slices.ContainsFunc(msgs, func(m schema.Message) bool { return m.Role == schema.RoleTool && m.Text == "late" }) {
			t.Fatalf("the late result is not in %+v", msgs)
		}
	})
}

// TestD14CutInsideAParallelRound: the budget ends within a round of four calls, which goes as a whole.
func TestD14CutInsideAParallelRound(t *testing.T) {
	t.Parallel()
	m := memory.New()
	m.Put(schema.SayKey(1), &schema.Say{Role: schema.RoleUser, Text: "go"})
	for n := 1; n <= 3; n++ {
		turn := &schema.Turn{N: n, Say: 1}
		for i := range 4 {
			turn.Calls = append(turn.Calls, call(fmt.Sprint("l", i), "tool"))
		}
		m.Put(schema.TurnKey(n), turn)
		for i := range 4 {
			m.Put(result(n, i, "q", strings.Repeat("x", 400)))
		}
	}
	for tokens, want := range map[int64]int{5000: 1, 800: 2, 900: 2, 500: 2, 450: 3, 0: 3} {
		if f := m.Plan(0, 2, tokens); f == nil || f.N != want || f.Say != 0 || f.Turns != 3 {
			t.Errorf("%d tokens: %+v, want a fold of %d turns", tokens, f, want)
		}
	}
	if f := m.Plan(1, 2, 0); f == nil || f.N != 2 {
		t.Errorf("%+v, want the newest turn kept", f)
	}
	f := m.Plan(0, 2, 400)
	f.Strategy = schema.CompactWindow
	m.Put(schema.FoldKey(f.N), f)
	want := []schema.Message{
		{Role: schema.RoleUser, Text: "[Turns 1 to 3 of this conversation were left out. The results of the last one were too large to keep: ask for less at a time.]"},
		{Role: schema.RoleUser, Text: "go"},
	}
	if diff := cmp.Diff(want, m.Messages()); diff != "" {
		t.Error(diff)
	}
	if m.Plan(0, 1, 0) != nil {
		t.Error("what is compacted already is planned again")
	}
}

// TestFoldsThatDoNotCount: a fold of turns that are not known, and an older one.
func TestFoldsThatDoNotCount(t *testing.T) {
	t.Parallel()
	m := memory.New()
	m.Put(schema.SayKey(1), &schema.Say{Role: schema.RoleUser, Text: "go"})
	for n := 1; n <= 4; n++ {
		m.Put(schema.TurnKey(n), &schema.Turn{N: n, Say: 1, Text: fmt.Sprint(n), Usage: schema.Usage{Input: 1}})
	}
	put := func(n, turns, say int) {
		m.Put(schema.FoldKey(n), &schema.Fold{N: n, Turns: turns, Say: say, Strategy: schema.CompactSummary, Usage: schema.Usage{Input: 100}})
	}
	put(3, 4, 0)
	put(2, 3, 0)
	put(4, 4, 2)
	put(0, 0, 0)
	put(9, 9, 0)
	if f := m.Fold(); f == nil || f.N != 3 {
		t.Errorf("fold %+v", f)
	}
	if used, _ := m.Usage(5); used.Input != 300 {
		t.Errorf("usage %+v", used)
	}
	if diff := cmp.Diff([]string{"go", "1", "2", "3", "4"}, spoken(m.History())); diff != "" {
		t.Error(diff)
	}
	m.Put(schema.SayKey(2), &schema.Say{Role: schema.RoleUser, Text: "more"})
	if f := m.Fold(); f == nil || f.N != 4 {
		t.Errorf("fold %+v", f)
	}
}

func spoken(msgs []schema.Message) []string {
	list := make([]string, len(msgs))
	for i, m := range msgs {
		list[i] = m.Text
	}
	return list
}

// TestA22TranscriptIsCutBetweenCharacters: a transcript keeps to its size, is valid UTF-8, and tells each part.
func TestA22TranscriptIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	m := memory.New()
	m.Put(schema.OpenKey(), &schema.Open{Agent: &schema.AgentSpec{Instructions: "secret"}})
	m.Put(schema.SayKey(1), &schema.Say{Role: schema.RoleUser, Text: "look"})
	m.Put(schema.TurnKey(1), &schema.Turn{N: 1, Say: 1, Text: "I look.", Calls: []schema.TurnCall{call("a", "cat"), call("b", "cat")}})
	m.Put(result(1, 0, "q", "head"+strings.Repeat("🙂", 9000)+"tail"))
	m.Put(schema.ResultKey(1, 1, "q"), &schema.Result{Error: &schema.Error{Type: schema.Timeout}})
	m.Put(schema.TurnKey(2), &schema.Turn{N: 2, Say: 1, Text: "later"})
	for size := 1000; size < 1010; size++ {
		got := m.Transcript(1, size)
		if len(got) > size+8 || !utf8.ValidString(got) {
			t.Errorf("%d bytes, valid %t", len(got), utf8.ValidString(got))
		}
		for _, want := range []string{"user: look", "assistant: I look.", "call of cat: {}", "result of cat: head", "tail", "result of cat, failed: TOOL_ERROR"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in %q", want, got)
			}
		}
		if strings.Contains(got, "later") || strings.Contains(got, "secret") {
			t.Errorf("too much: %q", got)
		}
	}
	m.Put(schema.FoldKey(1), &schema.Fold{N: 1, Turns: 1, Strategy: schema.CompactSummary, Text: strings.Repeat("s", 20_000)})
	if got := m.Transcript(2, 30_000); !strings.Contains(got, strings.Repeat("s", 20_000)) || !strings.Contains(got, "assistant: later") {
		t.Errorf("the earlier summary is cut: %d bytes", len(got))
	}
}
