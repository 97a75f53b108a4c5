package dialect

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/schema"
)

var rules = map[string]IDRule{"openai": {Max: 40, OK: PrintableChar}, "anthropic": {Max: 64, OK: WordChar}}

func TestA12Ids(t *testing.T) {
	t.Parallel()
	same := strings.Repeat("s", 64)
	ids := []string{strings.Repeat("a", 65), strings.Repeat("a", 94), strings.Repeat("a", 300), same + "x", same + "y", "grep:3", "grep_3", "日本", "", "call_1"}
	for name, r := range rules {
		seen := map[string]string{}
		for _, id := range ids {
			got := r.Fit(id)
			if got != r.Fit(id) || len(got) > r.Max || got == "" || !r.legal(got) {
				t.Errorf("A12 %s: %q became %q", name, id, got)
			}
			if other, ok := seen[got]; ok {
				t.Errorf("A12 %s: %q and %q both became %q", name, id, other, got)
			}
			seen[got] = id
		}
		if got := r.Fit("call_1"); got != "call_1" {
			t.Errorf("A12 %s: a legal id became %q", name, got)
		}
	}
}

func TestA12OneRunOnTwoProviders(t *testing.T) {
	t.Parallel()
	same := strings.Repeat("s", 64)
	labels := []string{same + "x", same + "y", strings.Repeat("a", 300), "ok"}
	var calls []schema.MessageCall
	msgs := []schema.Message{{Role: schema.RoleAssistant}}
	for _, l := range labels {
		calls = append(calls, schema.MessageCall{Label: l, Name: "t", Args: "{}"})
		msgs = append(msgs, schema.Message{Role: schema.RoleTool, Label: l, Text: l})
	}
	msgs[0].Calls = calls
	for name, r := range rules {
		h := History(append(msgs, msgs...), NewNames(nil, msgs), r)
		seen := map[string]bool{}
		for _, e := range h {
			for i, c := range e.Calls {
				if seen[c.ID] || len(c.ID) > r.Max || e.Results[i].Text != labels[i] {
					t.Errorf("A12 %s: call %d has id %q and result %.10q", name, i, c.ID, e.Results[i].Text)
				}
				seen[c.ID] = true
			}
		}
		if len(h) != 2 || len(seen) != 8 {
			t.Errorf("A12 %s: %d entries, %d ids", name, len(h), len(seen))
		}
	}
}

func TestA13EveryCallHasOneResult(t *testing.T) {
	t.Parallel()
	msgs := []schema.Message{
		{Role: schema.RoleAssistant, Calls: []schema.MessageCall{{Label: "a", Name: "x"}, {Label: "b", Name: "x"}, {Label: "c", Name: "x"}}},
		{Role: schema.RoleTool, Label: "b", Text: " \n", Error: true},
		{Role: schema.RoleTool, Label: "other", Text: "1"},
		{Role: schema.RoleUser, Text: "go on"},
		{Role: schema.RoleTool, Label: "z", Name: "y", Text: "late"},
	}
	got := History(msgs, NewNames(nil, msgs), rules["openai"])
	want := []Entry{
		{
			Role: schema.RoleAssistant, Calls: []Call{{"a", "x", "{}"}, {"b", "x", "{}"}, {"c", "x", "{}"}},
			Results: []Result{{Text: "1"}, {Text: NoOutput, Error: true}, {Text: noResult, Error: true}},
		},
		{Role: schema.RoleUser, Text: "go on"},
		{Role: schema.RoleUser, Text: "Result of y: late"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("A13 history (-want +got):\n%s", d)
	}
}

// FuzzA09SafeArgs: whatever a call holds, its arguments go out as a JSON object in UTF-8.
func FuzzA09SafeArgs(f *testing.F) {
	for _, s := range []string{"", "null", `{"p":"ab`, `["a"]`, "42", `{"a":"\ud99c"}`, "{\"a\":\"\xff\"}", `{"a":"\\ud99c\ud83d\ude42"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := SafeArgs(s)
		var v map[string]any
		if err := json.Unmarshal([]byte(got), &v); err != nil || v == nil || !utf8.ValidString(got) {
			t.Errorf("%q became %q: %v", s, got, err)
		}
		if strings.Contains(strings.ReplaceAll(got, `\\`, ""), `\ud99c"`) {
			t.Errorf("%q keeps a lone surrogate: %q", s, got)
		}
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	crafted := NewNames([]schema.Tool{{Name: "a.b"}}, nil).Encode("a.b")
	names := []string{"a.b", crafted, "a b", "", strings.Repeat("x", 5000), strings.Repeat("n", 90) + "1", strings.Repeat("n", 90) + "2", "管理/删除", "ok_name-1"}
	var tools []schema.Tool
	for _, n := range names {
		tools = append(tools, schema.Tool{Name: n})
	}
	m := NewNames(tools[:5], []schema.Message{{Calls: []schema.MessageCall{{Name: names[5]}, {Name: names[6]}, {Name: names[7]}, {Name: names[8]}}}})
	seen := map[string]bool{}
	for _, n := range names {
		out := m.Encode(n)
		if !legalName(out) || seen[out] || m.Decode(out) != n {
			t.Errorf("%.20q became %q and came back as %.20q", n, out, m.Decode(out))
		}
		seen[out] = true
	}
	if m.Encode("ok_name-1") != "ok_name-1" || m.Decode("unknown.tool") != "unknown.tool" {
		t.Error("a legal or unknown name was changed")
	}
}
