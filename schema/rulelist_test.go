package schema

import (
	"testing"
	"time"
)

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

func TestDecisionAnd(t *testing.T) {
	t.Parallel()
	var nothing Decision
	allow, named := Decision{Action: ActionAllow}, Decision{Action: ActionAllow, Rule: "a", Text: "x"}
	ask, deny := Decision{Action: ActionAsk, Rule: "b", Text: "y"}, Decision{Action: ActionDeny, Rule: "c"}
	guide, odd := Decision{Action: ActionGuide}, Decision{Action: "odd"}
	for name, c := range map[string]struct{ d, next, want Decision }{
		"nothing":                  {nothing, nothing, nothing},
		"allowing is nothing more": {nothing, allow, allow},
		"a rule is kept":           {named, allow, Decision{Action: ActionAllow, Rule: "a"}},
		"the last rule counts":     {named, Decision{Rule: "z"}, Decision{Action: ActionAllow, Rule: "z"}},
		"ask beats allow":          {named, ask, ask},
		"whenever it comes":        {ask, named, ask},
		"two questions are one":    {ask, Decision{Action: ActionAsk, Rule: "d"}, Decision{Action: ActionAsk, Rule: "b, d", Text: "y"}},
		"deny beats ask":           {ask, deny, deny},
		"the first ends it":        {deny, guide, deny},
		"unknown is a denial":      {ask, odd, odd},
	} {
		if got := c.d.And(c.next); got != c.want {
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

// Attempts that together take longer than a time.Duration holds are no reason to give up at once.
func TestHandoffWithinEver(t *testing.T) {
	t.Parallel()
	g := &Governance{Subagents: []Subagent{{Agent: "a", Handoff: &Handoff{TimeoutMS: 1_000_000 * time.Hour.Milliseconds(), MaxRetries: 3}}}}
	if d := time.Duration(g.HandoffWithin("subagent_a")) * time.Millisecond; d < 200*365*24*time.Hour {
		t.Errorf("within %v", d)
	}
}
