package agentfile

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/schema"
)

// full is a file that says all that one can say about governance.
func full(t *testing.T) *File {
	t.Helper()
	f, err := Open(filepath.Join("testdata", "good", "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParseGovernance(t *testing.T) {
	t.Parallel()
	f := full(t)
	want := &schema.Governance{
		Tools: []schema.ToolSetting{
			{
				Ref: "orders/refund_*", Approval: schema.ApproveAlways, Once: true, TimeoutMS: 30_000,
				Bind: `{"tenant":"${principal.tenant}","limits":[1.50,"$${run}"]}`,
			},
			{Ref: "web/fetch", Approval: schema.ApproveSafe, TimeoutMS: 1500},
		},
		Filters: []schema.FilterRule{
			{
				Name: "no secrets", Tools: []string{"read_file"}, When: `args.path.startsWith("/etc")`,
				Action: schema.ActionDeny, Text: "Files of the system are none of your business.",
			},
			{Tools: []string{"shell/bash"}, When: `args.command == ""`, Action: schema.ActionGuide, Text: "Say what to run."},
			{Tools: []string{"web/fetch"}, When: "true", Action: schema.ActionRedirect, Text: "read_file"},
			{Tools: []string{"refund_*"}, Action: schema.ActionAllow},
		},
		Policy: &schema.Policy{
			Presets: []string{"safe"},
			Rules: []schema.PolicyRule{
				{
					Name: "production", Tools: []string{"orders/refund_*"}, Effects: []string{"write", "destructive"}, Environments: []string{"production"},
					When: "args.amount > 100", Action: schema.ActionAsk, Text: "Large refunds",
				},
				{Tools: []string{"shell/bash"}, Risk: schema.RiskCritical},
				{Effects: []string{"read"}, Action: schema.ActionAllow},
			},
			Default: schema.ActionDeny, Autonomy: schema.AutonomySupervised, ExpiresMS: 24 * 3600 * 1000,
		},
		Environment: "production",
		Authority:   []string{"tool:*", "effect:read", "spend:2.50", "until:2030-01-01T00:00:00Z", "and", "tenant:acme"},
		AbortOn:     []string{"orders/refund_all"},
		Subagents: []schema.Subagent{
			{
				Agent: "Re.Searcher", Name: "research", Description: "Finds things out.", Session: schema.SessionNew,
				Handoff: &schema.Handoff{
					Allowed: []string{"research"}, Denied: []string{"subagent_writer"}, MaxDepth: 2, MaxRetries: 1, TimeoutMS: 120_000,
					OnDenied: schema.HandoffFallback, OnError: schema.HandoffFallback, Fallback: "Nobody could find it out.",
				},
			},
			{Agent: "writer", Name: "subagent_writer", Session: schema.SessionReuse},
		},
		Handoff: &schema.Handoff{MaxDepth: -1, TimeoutMS: 90_000},
	}
	if diff := cmp.Diff(want, f.Agent.Governance); diff != "" {
		t.Errorf("governance (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"read_file", "orders/refund_*", "shell/bash", "web/fetch"}, f.Agent.Tools); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if want := "You work for Acme $${y} ${currency}.\n\nPrices are in EUR; ${x} stays. Acme $${y} ${currency}!"; f.Agent.Instructions != want {
		t.Errorf("instructions = %q, want %q", f.Agent.Instructions, want)
	}
	for _, w := range f.Warnings {
		t.Errorf("warning at %s: %s", w.Path, w.Message)
	}
}

// TestEveryFieldOfGovernanceCanBeSet: a field that is added to the wire and not to the file is found here. See weak
// point 19 of the seed: what a file declares is applied, not only checked.
func TestEveryFieldOfGovernanceCanBeSet(t *testing.T) {
	t.Parallel()
	set := map[string]bool{}
	all := map[string]bool{}
	walkFields(reflect.ValueOf(*full(t).Agent.Governance), "Governance", all, set)
	for name := range all {
		if !set[name] && name != "Governance.Above" { // what the files of other agents say
			t.Errorf("no part of the file sets %s", name)
		}
	}
	if len(all) < 40 {
		t.Errorf("only %d fields were looked at", len(all))
	}
}

// walkFields notes all fields below v, and those that hold something.
func walkFields(v reflect.Value, name string, all, set map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v = reflect.New(v.Type().Elem())
		}
		walkFields(v.Elem(), name, all, set)
	case reflect.Slice:
		for i := range v.Len() {
			walkFields(v.Index(i), name, all, set)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Name() + "." + v.Type().Field(i).Name
			all[field] = true
			set[field] = set[field] || !v.Field(i).IsZero()
			walkFields(v.Field(i), field, all, set)
		}
	}
}

func TestGovernanceIsAbsentWhereTheFileSaysNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "filters: []\n", "policy:\n", "tools: [{ref: bash}]\n", "tools: [{ref: bash, once: false, approval: null, bind: {}}]\n", "subagents: []\n",
	} {
		if got := parseOK(t, head+text).Governance; got != nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestGovernanceSpellings(t *testing.T) {
	t.Parallel()
	camel := parseOK(t, head+`
tools: [{ref: a, timeoutMillis: 5}]
abortOn: [a]
policy: {expiresMillis: 7}
subagents: [{agent: b, policy: {allowedTools: [subagent_b], deniedTools: [subagent_b], maxDepth: 1, maxRetries: 2, onDenied: fail, onError: fallback, fallback: x, timeoutMillis: 4}}]
`)
	snake := parseOK(t, head+`
tools: [{ref: a, timeout: 5ms}]
abort_on: [a]
policy: {expires: 7ms}
subagents: [{agent: b, policy: {allowed_tools: [subagent_b], denied_tools: [subagent_b], max_depth: 1, max_retries: 2, on_denied: fail, on_error: fallback, fallback: x, timeout: 4ms}}]
`)
	if diff := cmp.Diff(camel, snake); diff != "" {
		t.Errorf("the spellings differ:\n%s", diff)
	}
}

func TestInstructions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"as ${it} is $${x}":                "as ${it} is $${x}",
		"{system: a}":                      "a",
		"{developer: b}":                   "b",
		"{system: \"a\\n\", developer: b}": "a\n\nb",
		"{system: '', developer: ' '}":     "",
		"{}":                               "",
		"{system: null, variables: null}":  "",
		"{system: '$5, $, {a}, $${a}', developer: null}":          "$5, $, {a}, ${a}",
		"{system: '${a.b-c}${a.b-c}', variables: {a.b-c: '${x'}}": "${x${x",
	} {
		if got := parseOK(t, head+"instructions: "+text+"\n").Instructions; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []string // code and path of each
	}{
		{"tools: [{ref: a, approval: ask}]", []string{"jetcrew.tool.approval.notAsked $.tools[0].approval"}},
		{"tools: [b, {ref: a, approval: safe}]\npolicy: {autonomy: full-auto}", []string{"jetcrew.tool.approval.notAsked $.tools[1].approval"}},
		{"tools: [{ref: a, approval: ask}, {ref: b, approval: safe}]\npolicy: {autonomy: supervised}", nil},
		{"tools: [{ref: a, approval: always}, {ref: b, approval: never}]", nil},
		{"tools: [{ref: a, approval: sometimes}]", []string{"jetcrew.tool.approval.unknown $.tools[0].approval"}},
		{"tools: [{ref: 'a*', once: true}, {ref: ab, once: true}]", []string{"jetcrew.tool.setting.unreachable $.tools[1]"}},
		{"tools: [{ref: ab, once: true}, {ref: 'a*', once: true}]", nil},
		{"tools: ['a*', {ref: ab, once: true}]", nil},
		{"filters: [{block: all}, {allow: true}, {guide: x}]", []string{"jetcrew.filter.unreachable $.filters[1]", "jetcrew.filter.unreachable $.filters[2]"}},
		{"tools: [a, b]\nfilters: [{tools: [a, b], allow: true}, {tools: [b], block: x}, {block: y}]", []string{"jetcrew.filter.unreachable $.filters[1]"}},
		{"filters: [{when: 'true', block: all}, {allow: true}]", nil},
		{"tools: [a]\nfilters: [{tools: [b], block: x}]", []string{"jetcrew.tool.unknown $.filters[0].tools[0]"}},
		{"tools: [a]\nabortOn: [a, shell/a, 'x*']", []string{"jetcrew.tool.unknown $.abortOn[2]"}},
		{"tools: [shell/a]\nabort_on: [a, shell/a, web/a]", []string{"jetcrew.tool.unknown $.abort_on[2]"}},
		{"tools: ['*']\npolicy: {rules: [{tools: [anything], deny: true}]}", nil},
		{"subagents: [{agent: b}]\npolicy: {rules: [{tools: [agents/subagent_b, agents/b, nobody, subagent_b], deny: true}]}", []string{
			"jetcrew.tool.unknown $.policy.rules[0].tools[2]", "jetcrew.tool.unknown $.policy.rules[0].tools[3]",
		}},
		{"tools: ['*', agents/c]\nabortOn: [agents/b, 'agents/*', '*']", []string{"jetcrew.tool.unknown $.abortOn[0]"}},
		{"policy: {rules: [{environments: [test], deny: true}]}", []string{"jetcrew.policy.environment.notSet $.policy.rules[0].environments"}},
		{"policy: {rules: [{risk: high}]}", []string{"jetcrew.policy.risk.notAsked $.policy.rules[0].risk"}},
		{"policy: {rules: [{risk: critical}, {risk: low, ask: true}]}", nil},
		{"policy: {autonomy: cautious, rules: [{risk: low}]}", nil},
		{"tools: [agents/c]\nauthority: ['tool:*', 'spend:1.5']", []string{"jetcrew.authority.spend.noPrice $.authority[1]"}},
		{"subagents: [{agent: b}]\nauthority: ['spend:1.5']", []string{"jetcrew.authority.spend.noPrice $.authority[0]"}},
		{"handoff: {}", []string{"jetcrew.handoff.unused $.handoff"}},
		{"subagents: [{agent: b, policy: {fallback: x}}]", []string{"jetcrew.handoff.fallback.unused $.subagents[0].policy.fallback"}},
		{"subagents: [{agent: b}]\nhandoff: {deniedTools: [subagent_b]}", []string{"jetcrew.handoff.contradiction $.subagents[0]"}},
		{"subagents: [{agent: b}, {agent: c}]\nhandoff: {allowedTools: [subagent_b]}", []string{"jetcrew.handoff.contradiction $.subagents[1]"}},
	} {
		f, err := Read("agent.yaml", []byte(head+c.text+"\n"))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		var got []string
		for _, w := range f.Warnings {
			got = append(got, string(w.Code)+" "+w.Path)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
}

// TestOneMistakeOneProblem: what is wrong with a value is not said once more of what stands beside it, or of what it makes.
func TestOneMistakeOneProblem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"authority: ['tool:*', nonsense, and, 'tenant:a']":     "jetcrew.authority.scope.invalid $.authority[1]",
		"authority: ['tool:*', and, '']":                       "jetcrew.text.empty $.authority[2]",
		"authority: ['tool:*', and]":                           "jetcrew.authority.scope.invalid $.authority[1]",
		"authority: ['spend:much']":                            "jetcrew.authority.scope.invalid $.authority[0]",
		"authority: none":                                      "jetcrew.type.list $.authority",
		"policy: {rules: [{effects: read, deny: true}]}":       "jetcrew.type.list $.policy.rules[0].effects",
		"tools: [{ref: a, queue: '['}]":                        "jetcrew.tool.queue.invalid $.tools[0].queue",
		"tools: [{ref: a, once: true}, {ref: a, timeout: 5s}]": "jetcrew.tool.duplicate $.tools[1]",
	} {
		_, err := Read("agent.yaml", []byte(head+text+"\n"))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		for _, p := range append(e.Problems, e.Warnings...) {
			got = append(got, string(p.Code)+" "+p.Path)
		}
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestUnknownApprovalIsTheStrictest(t *testing.T) {
	t.Parallel()
	if got := parseOK(t, head+"tools: [{ref: a, approval: sometimes}]\n").Governance.Tools[0].Approval; got != schema.ApproveAlways {
		t.Errorf("approval = %q", got)
	}
}

// TestForeignProblems: what others find in the governance is shown in the file.
func TestForeignProblems(t *testing.T) {
	t.Parallel()
	f := full(t)
	text, err := os.ReadFile(filepath.Join("testdata", "good", "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for path, want := range map[string]struct{ path, at string }{
		"filters[0].when":              {"$.filters[0].when", `args.path.startsWith("/etc")`},
		"filters[1].when":              {"$.filters[1].when", `'args.command == ""'`},
		"filters[1].text":              {"$.filters[1].guide", "Say what"},
		"filters[0].action":            {"$.filters[0].block", "Files of"},
		"policy.rules[0].when":         {"$.policy.rules[0].when", "args.amount"},
		"policy.rules[2].action":       {"$.policy.rules[2].allow", "true"},
		"policy.presets[0]":            {"$.policy.presets[0]", "safe"},
		"policy.expires_ms":            {"$.policy.expires", "24h"},
		"tools[0].bind":                {"$.tools[1].bind", "{tenant"},
		"tools[1].timeout_ms":          {"$.tools[3].timeoutMillis", "1500"},
		"tools[1]":                     {"$.tools[3]", "{ref: web"},
		"subagents[0].handoff.allowed": {"$.subagents[0].policy.allowedTools", "[research"},
		"subagents[1].handoff":         {"$.subagents[1]", "agent: writer"},
		"abort_on[0]":                  {"$.abortOn[0]", "orders/"},
		"handoff.max_depth":            {"$.handoff.maxDepth", "-1"},
		"$.tools[1].queue":             {"$.tools[1].queue", "orders"},
		"$.model":                      {"$.model", "provider"},
		"filters[9].when":              {"$.filters", "- name: no"},
		"":                             {"$", "version"},
	} {
		p := f.Problem(path, "jetcrew.x", "m")
		if p.Path != want.path || p.Code != "jetcrew.x" || p.Message != "m" {
			t.Errorf("%s: %+v, want path %s", path, p, want.path)
		}
		if at := lines[p.Line-1][p.Column-1:]; !strings.HasPrefix(at, want.at) {
			t.Errorf("%s: shown at %q, want %q", path, at, want.at)
		}
	}
}

func TestForeignProblemsFollowAliases(t *testing.T) {
	t.Parallel()
	f, err := Read("agent.yaml", []byte(head+"filters:\n  - &f {when: a, block: x}\n  - *f\n"))
	if err != nil {
		t.Fatal(err)
	}
	if p := f.Problem("filters[1].when", "c", "m"); p.Path != "$.filters[1].when" || p.Line != 5 {
		t.Errorf("%+v", p)
	}
	fail := f.Fail(p2(f, "filters[1].when"), p2(f, "$.id"))
	if e := fail.(*Error); len(e.Problems) != 2 || e.Problems[0].Line != 2 || !strings.Contains(fail.Error(), "agent.yaml:5:") { //nolint:errorlint // it is made here
		t.Error(fail)
	}
}

// TestForeignProblemsWithinATextAreShownThere: what CEL says about a place in a condition is shown at that place.
func TestForeignProblemsWithinATextAreShownThere(t *testing.T) {
	t.Parallel()
	f, err := Read("agent.yaml", []byte(head+`filters:
  - {when: a == b, block: x}
  - {when: "a == b", block: x}
  - {when: 'a == ''b''', block: x}
  - when: |
      a ==
        b
    block: x
  - when: >-
      a ==
      b
    block: x
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path                 string
		line, column         int
		wantLine, wantColumn int
	}{
		{"filters[0].when", 1, 6, 5, 17},
		{"filters[1].when", 1, 6, 6, 18},
		{"filters[1].when", 1, 7, 6, 19},
		{"filters[2].when", 1, 3, 7, 12}, // its quotes are doubled in the file
		{"filters[3].when", 1, 3, 9, 9},
		{"filters[3].when", 2, 3, 10, 9},
		{"filters[4].when", 1, 6, 12, 11}, // folded
		{"filters[0].when", 5, 5, 5, 12},
		{"filters[0].when", 0, 0, 5, 12},
	} {
		if p := f.ProblemIn(c.path, "c", "m", c.line, c.column); p.Line != c.wantLine || p.Column != c.wantColumn {
			t.Errorf("%s %d:%d: shown at %d:%d, want %d:%d", c.path, c.line, c.column, p.Line, p.Column, c.wantLine, c.wantColumn)
		}
	}
}

func p2(f *File, path string) Problem { return f.Problem(path, "c", "m") }
