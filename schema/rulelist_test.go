package schema

import "testing"

func TestJoinAsks(t *testing.T) {
	t.Parallel()
	ask := func(rule, text string) Decision { return Decision{Action: ActionAsk, Rule: rule, Text: text} }
	for name, c := range map[string]struct{ a, b, want Decision }{
		"two":          {ask("a", "x"), ask("b", "y"), ask("a, b", "x; y")},
		"the same":     {ask("a", "x"), ask("a", "x"), ask("a", "x")},
		"part of it":   {ask("a, b", "x; y"), ask("b", "y"), ask("a, b", "x; y")},
		"a nameless":   {ask("", "x"), ask("b", ""), ask("b", "x")},
		"not the same": {ask("ab", ""), ask("b", ""), ask("ab, b", "")},
	} {
		if got := JoinAsks(c.a, c.b); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestRulesCovered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		now, before string
		want        bool
	}{{"a", "a", true}, {"a", "b, a", true}, {"a, b", "b, a", true}, {"a, c", "b, a", false}, {"", "", true}, {"a", "", false}, {"", "a", false}} {
		if got := RulesCovered(c.now, c.before); got != c.want {
			t.Errorf("%q before %q: %v", c.now, c.before, got)
		}
	}
}

func TestHandoffWithin(t *testing.T) {
	t.Parallel()
	g := &Governance{
		Subagents: []Subagent{{Agent: "a", Handoff: &Handoff{TimeoutMS: 5000, MaxRetries: 2}}, {Agent: "b", Handoff: &Handoff{}}, {Agent: "c"}},
		Handoff:   &Handoff{TimeoutMS: 1000},
	}
	for tool, want := range map[string]int64{"subagent_a": 75_000, "subagent_b": 0, "subagent_c": 61_000, "other": 0} {
		if got := g.HandoffWithin(tool); got != want {
			t.Errorf("%s: %d, want %d", tool, got, want)
		}
	}
	if (*Governance)(nil).HandoffWithin("subagent_a") != 0 {
		t.Error("without a governance there is no bound")
	}
}
