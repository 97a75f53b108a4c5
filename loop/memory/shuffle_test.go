package memory_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/schema"
)

// drawRun draws the facts of a whole run, some of its last results missing, in stored order.
func drawRun(t *rapid.T) []schema.Fact {
	facts := []schema.Fact{fact(t, schema.OpenKey(), &schema.Open{Agent: &schema.AgentSpec{Instructions: rapid.StringN(0, 9, -1).Draw(t, "instructions")}})}
	add := func(key schema.Key, p schema.Encodable) { facts = append(facts, fact(t, key, p)) }
	says, turns := 0, rapid.IntRange(0, 5).Draw(t, "turns")
	for n := 1; n <= turns; n++ {
		for range rapid.IntRange(0, 2).Draw(t, "says") {
			says++
			source := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "source")
			add(schema.SayKey(says), &schema.Say{Role: schema.RoleUser, Text: fmt.Sprint("say ", says), Source: source})
		}
		turn := &schema.Turn{N: n, Say: rapid.IntRange(0, says).Draw(t, "seen"), Text: fmt.Sprint("turn ", n)}
		for i := range rapid.IntRange(0, 5).Draw(t, "calls") {
			turn.Calls = append(turn.Calls, call(fmt.Sprint("l", i), "tool"))
		}
		add(schema.TurnKey(n), turn)
		for i := range turn.Calls {
			if rapid.IntRange(0, 9).Draw(t, "lost") > 0 {
				add(result(n, i, "q", fmt.Sprint("result ", n, ".", i)))
			}
			if rapid.Bool().Draw(t, "view") {
				add(schema.ViewKey(n, i), &schema.View{Text: fmt.Sprint("view ", n, ".", i)})
			}
		}
	}
	return facts
}

// TestAnyOrderGivesTheSameMemory: shuffled and doubled facts fold to the same messages.
func TestAnyOrderGivesTheSameMemory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		facts := drawRun(t)
		want := messages(t, facts)
		again := rapid.SliceOfN(rapid.SampledFrom(facts), 0, 10).Draw(t, "again")
		mixed := rapid.Permutation(append(slices.Clone(facts), again...)).Draw(t, "mixed")
		if diff := cmp.Diff(want, messages(t, mixed)); diff != "" {
			t.Error(diff)
		}
		checkPairs(t, want)
	})
}

func messages(t interface{ Fatal(...any) }, facts []schema.Fact) []schema.Message {
	m := memory.New()
	for _, f := range facts {
		if err := m.Apply(f); err != nil {
			t.Fatal(err)
		}
	}
	return m.Messages()
}

// checkPairs: behind each assistant message stands one tool message per call, in call order, and nowhere else.
func checkPairs(t interface{ Errorf(string, ...any) }, msgs []schema.Message) {
	var want []schema.MessageCall
	for i, m := range msgs {
		switch {
		case m.Role == schema.RoleTool && len(want) > 0 && want[0].Label == m.Label && want[0].Name == m.Name:
			want = want[1:]
		case m.Role == schema.RoleTool || len(want) > 0:
			t.Errorf("message %d: %s %q, open calls %v", i, m.Role, m.Label, want)
			return
		default:
			want = m.Calls
		}
	}
	if len(want) > 0 {
		t.Errorf("calls %v have no result", want)
	}
}

// FuzzApply: whatever bytes stand in whatever facts, in whatever order, memory neither panics nor breaks the pairing.
func FuzzApply(f *testing.F) {
	for _, fc := range []schema.Fact{
		fact(f, schema.SayKey(1), &schema.Say{Role: "user", Text: "hi"}),
		fact(f, schema.TurnKey(1), &schema.Turn{N: 1, Say: 1, Calls: []schema.TurnCall{call("l", "t")}}),
	} {
		f.Add(fc.Key.String(), fc.Data, "result.1.0.q", []byte(`{"v":1,"ok":true,"output":"x"}`))
	}
	f.Add("turn.1", []byte(`{"n":1,"say":-5,"calls":[{"label":"a","queue":"q"}]}`), "view.1.0", []byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Add("turn.1", []byte(`{"n":1,"calls":[{"label":"a","queue":"q"}]}`), "fold.1", []byte(`{"n":9,"turns":-1,"say":-3,"strategy":"x","text":"y"}`))
	f.Fuzz(func(t *testing.T, key1 string, data1 []byte, key2 string, data2 []byte) {
		var facts []schema.Fact
		for _, in := range []struct {
			key  string
			data []byte
		}{{key1, data1}, {key2, data2}} {
			if key, err := schema.ParseKey(in.key); err == nil {
				facts = append(facts, schema.Fact{Run: "r", Key: key, Data: in.data})
			}
		}
		if len(facts) == 2 && facts[0].Key == facts[1].Key {
			return // a fact is written once
		}
		want := tolerant(facts)
		slices.Reverse(facts)
		if diff := cmp.Diff(want, tolerant(append(facts, facts...))); diff != "" {
			t.Error(diff)
		}
		checkPairs(t, want)
	})
}

// tolerant folds facts of which some cannot be read.
func tolerant(facts []schema.Fact) []schema.Message {
	m := memory.New()
	for _, f := range facts {
		_ = m.Apply(f)
	}
	return m.Messages()
}
