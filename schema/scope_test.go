package schema

import (
	"strings"
	"testing"
	"time"
)

func TestMatchTool(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, queue, name string
		want                 bool
	}{
		{"read_file", "files", "read_file", true},
		{"read_file", "files", "read_files", false},
		{"read_*", "files", "read_file", true},
		{"*", "files", "read_file", true},
		{"*", QueueAgents, "helper", false},
		{"agents/*", QueueAgents, "helper", true},
		{"agents/helper", QueueAgents, "helper", true},
		{"helper", QueueAgents, "helper", false},
		{"files/read_*", "files", "read_file", true},
		{"files/read_*", "other", "read_file", false},
		{"a/b", "files", "a/b", true},
		{"files/a/b", "files", "a/b", true},
		{"a?c", "files", "a/c", true},
		{"a?c", "files", "aéc", true},
		{"a??c", "files", "aéc", false},
		{"[ab]", "files", "a", false},
		{"[ab]", "files", "[ab]", true},
		{"*a*b", "files", "xaxxb", true},
		{"*a*b", "files", "xaxx", false},
		{"shell/bash", "shell-bash", "bash", true}, // limited over the fleet
		{"shell/*", "shell-bash", "bash", true},
		{"shell/sh", "shell-bash", "bash", false},
		{"shell/bash", "shell-bash", "sh", false},
		{"shell-bash/bash", "shell-bash", "bash", true},
		{"agents/bash", "agents-bash", "bash", false},
		{"mcp/a.B", LimitedQueue("mcp", "a.B"), "a.B", true},
		{"mcp/a.b", LimitedQueue("mcp", "a.B"), "a.b", false},
		{strings.Repeat("q", 64) + "/b", LimitedQueue(strings.Repeat("q", 64), "b"), "b", true},
		{"", "files", "", true},
		{"", "files", "a", false},
	} {
		if got := MatchTool(c.pattern, c.queue, c.name); got != c.want {
			t.Errorf("MatchTool(%q, %q, %q) = %v, want %v", c.pattern, c.queue, c.name, got, c.want)
		}
	}
}

func TestPermits(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	read := Scoped{Queue: "files", Tool: "read_file", Effect: EffectRead, Tenant: "acme"}
	for name, c := range map[string]struct {
		scopes []string
		call   Scoped
		want   bool
	}{
		"none":                     {nil, read, true},
		"tool":                     {[]string{"tool:read_*"}, read, true},
		"other tool":               {[]string{"tool:bash"}, read, false},
		"one of two":               {[]string{"tool:bash", "tool:read_file"}, read, true},
		"queue":                    {[]string{"tool:shell/*"}, read, false},
		"effect":                   {[]string{"effect:read"}, read, true},
		"other effect":             {[]string{"effect:write"}, read, false},
		"no effect is destructive": {[]string{"effect:read", "effect:write", "effect:network"}, Scoped{Tool: "x"}, false},
		"unknown effect":           {[]string{"effect:destructive"}, Scoped{Tool: "x", Effect: "magic"}, true},
		"tenant":                   {[]string{"tenant:acme"}, read, true},
		"other tenant":             {[]string{"tenant:other"}, read, false},
		"no tenant":                {[]string{"tenant:acme"}, Scoped{Tool: "x"}, false},
		"valid":                    {[]string{"from:2026-01-01T00:00:00Z", "until:2027-01-01T00:00:00Z"}, read, true},
		"not yet":                  {[]string{"from:2026-06-01T00:00:01Z"}, read, false},
		"from now":                 {[]string{"from:2026-06-01T00:00:00Z"}, read, true},
		"over now":                 {[]string{"until:2026-06-01T00:00:00Z"}, read, false},
		"bad time":                 {[]string{"until:tomorrow"}, read, false},
		"unknown kind":             {[]string{"tool:*", "root"}, read, false},
		"both allow":               {[]string{"tool:read_*", "and", "tool:*_file"}, read, true},
		"first refuses":            {[]string{"tool:bash", "and", "tool:*"}, read, false},
		"second refuses":           {[]string{"tool:*", "and", "tool:bash"}, read, false},
		"spend is not asked here":  {[]string{"spend:0"}, read, true},
	} {
		if why := Permits(c.scopes, c.call, at); (why == "") != c.want {
			t.Errorf("%s: Permits = %q, want permitted %v", name, why, c.want)
		}
	}
}

// What a child may do is never more than what its parent may.
func TestWithin(t *testing.T) {
	t.Parallel()
	sets := [][]string{nil, {"tool:*"}, {"tool:read_*"}, {"tool:bash"}, {"effect:read"}, {"tool:read_*", "and", "effect:read"}}
	calls := []Scoped{{Tool: "read_file", Effect: EffectRead}, {Tool: "read_all", Effect: EffectWrite}, {Tool: "bash"}}
	for _, a := range sets {
		for _, b := range sets {
			for _, c := range calls {
				both := Permits(a, c, time.Now()) == "" && Permits(b, c, time.Now()) == ""
				if got := Permits(Within(a, b), c, time.Now()) == ""; got != both {
					t.Errorf("%v within %v: %+v permitted %v, want %v", b, a, c, got, both)
				}
			}
		}
	}
}

func TestCheckScopes(t *testing.T) {
	t.Parallel()
	good := []string{"tool:*", "effect:read", "tenant:a", "spend:2.5", "from:2026-01-01T00:00:00Z", "until:2026-01-01T00:00:00Z", "and", "tool:x"}
	if err := CheckScopes(good); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "tool", "tool:", "root:1", "effect:magic", "spend:-1", "spend:NaN", "spend:Inf", "from:now", "and"} {
		if CheckScopes([]string{bad}) == nil {
			t.Errorf("scope %q is taken", bad)
		}
	}
}

func TestSpendLimit(t *testing.T) {
	t.Parallel()
	if _, ok := SpendLimit([]string{"tool:*"}); ok {
		t.Error("an amount that nobody named")
	}
	if usd, ok := SpendLimit([]string{"spend:5", "and", "spend:2.5"}); !ok || usd != 2.5 {
		t.Errorf("SpendLimit = %v, %v, want 2.5", usd, ok)
	}
	if usd, ok := SpendLimit([]string{"spend:much"}); !ok || usd != 0 {
		t.Errorf("an amount that cannot be read is %v, %v, want 0", usd, ok)
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	call := &TurnCall{Tool: "pay", Args: `{"n":1}`, Bound: `{"tenant":"a"}`, Queue: "bank", Digest: "d"}
	ask := NewAsk(call, Decision{Action: ActionAsk, Rule: "r"}, "")
	ask.ExpiresMS = 100
	key := AskKey(1, 0, 1)
	good := ask.Digest("run", key)
	swapped := *call
	swapped.Args = `{"n":2}`
	other := NewAsk(&swapped, Decision{}, "")
	for name, c := range map[string]struct {
		v    Verdict
		want bool
	}{
		"approved":           {Verdict{Decision: VerdictApprove, Digest: good, AtMS: 99}, true},
		"denied":             {Verdict{Decision: VerdictDeny, Digest: good}, false},
		"unknown":            {Verdict{Decision: "yes", Digest: good}, false},
		"too late":           {Verdict{Decision: VerdictApprove, Digest: good, AtMS: 100}, false},
		"without a time":     {Verdict{Decision: VerdictApprove, Digest: good}, false},
		"without digest":     {Verdict{Decision: VerdictApprove}, false},
		"of another run":     {Verdict{Decision: VerdictApprove, Digest: ask.Digest("other", key)}, false},
		"of another ask":     {Verdict{Decision: VerdictApprove, Digest: ask.Digest("run", AskKey(1, 0, 2))}, false},
		"of other arguments": {Verdict{Decision: VerdictApprove, Digest: other.Digest("run", key)}, false},
	} {
		if _, ok := c.v.Approves("run", VerdictKey(1, 0, 1), ask); ok != c.want {
			t.Errorf("%s: approves %v, want %v", name, ok, c.want)
		}
		if text := c.v.Refusal(ask); text == "" {
			t.Errorf("%s: refused without a word", name)
		}
	}
}

func TestSubagentName(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{"reviewer": "subagent_reviewer", "Code.Reviewer": "subagent_code_reviewer", "a--b": "subagent_a--b", "x.": "subagent_x"} {
		if got := SubagentName(id); got != want {
			t.Errorf("SubagentName(%q) = %q, want %q", id, got, want)
		}
	}
}
