package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNormalise(t *testing.T) {
	t.Parallel()
	allow := Decision{Action: ActionAllow}
	for _, c := range []struct {
		name string
		raw  []RawCall
		want []TurnCall
	}{
		{"no calls", nil, []TurnCall{}},
		{"A01 empty, blank and absent arguments", []RawCall{{"a", "ping", ""}, {"b", "ping", " \n"}, {ID: "c", Name: "ping"}}, []TurnCall{
			{Label: "a", Tool: "ping", Args: "{}", Decision: allow},
			{Label: "b", Tool: "ping", Args: "{}", Raw: " \n", Decision: allow},
			{Label: "c", Tool: "ping", Args: "{}", Decision: allow},
		}},
		{"A02 null", []RawCall{{"a", "ping", "null"}, {"b", "ping", `"null"`}}, []TurnCall{
			{Label: "a", Tool: "ping", Args: "{}", Raw: "null", Decision: allow},
			{Label: "b", Tool: "ping", Args: "{}", Raw: `"null"`, Notes: []string{NoteUnwrapped}, Decision: allow},
		}},
		{"A03 siblings are unaffected", []RawCall{{"a", "x", `["a"]`}, {"b", "x", `{"n":1}`}}, []TurnCall{
			{Label: "a", Tool: "x", Args: "{}", Raw: `["a"]`, Queue: QueueNone, Decision: Decision{
				Action: ActionInvalid, Type: InvalidArguments, Text: "arguments must be an object, got array",
			}},
			{Label: "b", Tool: "x", Args: `{"n":1}`, Decision: allow},
		}},
		{"A05 unwrapped once", []RawCall{{"a", "x", `"{\"city\": \"Bengaluru\"}"`}}, []TurnCall{
			{Label: "a", Tool: "x", Args: `{"city":"Bengaluru"}`, Raw: `"{\"city\": \"Bengaluru\"}"`, Notes: []string{NoteUnwrapped}, Decision: allow},
		}},
		{"A10 repeated and missing ids", []RawCall{
			{"grep:3", "grep", `{"p":"a"}`}, {"grep:3", "grep", `{"p":"b"}`}, {"", "read", "{}"}, {Name: "read", Args: "{}"},
		}, []TurnCall{
			{Label: "grep:3", Tool: "grep", Args: `{"p":"a"}`, Decision: allow},
			{Label: "grep:3_1", Tool: "grep", Args: `{"p":"b"}`, Decision: allow},
			{Label: "tool_step_4_2", Tool: "read", Args: "{}", Decision: allow},
			{Label: "tool_step_4_3", Tool: "read", Args: "{}", Decision: allow},
		}},
		{"A25 three calls of one response", []RawCall{{" a ", " x\n", "{}"}, {"b", "y", "{}"}, {"c", " ", "{}"}}, []TurnCall{
			{Label: "a", Tool: "x", Args: "{}", Decision: allow},
			{Label: "b", Tool: "y", Args: "{}", Decision: allow},
			{Label: "c", Tool: "", Args: "{}", Decision: allow},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, Normalise(4, c.raw)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestA10LabelsNeverCollide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		ids, want []string
	}{
		{"a made-up label is somebody's id", []string{"", "tool_step_1_0"}, []string{"tool_step_1_0_0", "tool_step_1_0"}},
		{"a suffixed label is somebody's id", []string{"a", "a", "a_1"}, []string{"a", "a_1_1", "a_1"}},
		{"three of one", []string{"a", "a", "a"}, []string{"a", "a_1", "a_2"}},
		{"ids that differ in white space", []string{"a", " a"}, []string{"a", "a_1"}},
		{"ids that differ in invalid bytes", []string{"a\xff", "a\xfe"}, []string{"a\uFFFD", "a\uFFFD_1"}},
		{"all blank", []string{"", " ", ""}, []string{"tool_step_1_0", "tool_step_1_1", "tool_step_1_2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			raw := make([]RawCall, len(c.ids))
			for i, id := range c.ids {
				raw[i].ID = id
			}
			var got []string
			for _, call := range Normalise(1, raw) {
				got = append(got, call.Label)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestA10LabelsProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.StringMatching(`(a|b|tool_step_2|)(_[0-3]){0,3}`), 0, 12).Draw(t, "ids")
		raw := make([]RawCall, len(ids))
		for i, id := range ids {
			raw[i] = RawCall{ID: id, Name: "x"}
		}
		calls := Normalise(2, raw)
		seen := make(map[string]int)
		for i, c := range calls {
			if j, dup := seen[c.Label]; dup || c.Label == "" {
				t.Fatalf("calls %d and %d share label %q", i, j, c.Label)
			}
			seen[c.Label] = i
			if ids[i] != "" && slices.Index(ids, ids[i]) == i && c.Label != ids[i] {
				t.Fatalf("call %d bears id %q first, yet its label is %q", i, ids[i], c.Label)
			}
		}
		if diff := cmp.Diff(calls, Normalise(2, raw)); diff != "" {
			t.Fatalf("not deterministic:\n%s", diff)
		}
	})
}

// A call and the result that it fails with share the new label.
func TestA10ResultBearsTheLabel(t *testing.T) {
	t.Parallel()
	calls := Normalise(1, []RawCall{{"x", "grep", "{}"}, {"x", "grep", "[]"}})
	call := &Call{Run: "r", Turn: 1, Index: 1, Label: calls[1].Label, Tool: calls[1].Tool}
	r, stopped := calls[1].Decision.Outcome(call)
	want := `TOOL_ERROR: {"errorType":"InvalidArguments","error":"arguments must be an object, got array","tool":"grep","callId":"x_1"}`
	if !stopped || r.Output != want || r.OK {
		t.Errorf("got %v %q\nwant %q", stopped, r.Output, want)
	}
}

func TestA12LongIDsStayDifferent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("i", 4000)
	calls := Normalise(1, []RawCall{{ID: long + "a"}, {ID: long + "b"}, {ID: long + "a"}, {ID: long[:300]}})
	if calls[0].Label == calls[1].Label || calls[0].Label == calls[2].Label || calls[3].Label != long[:300] {
		t.Errorf("labels %q, %q, %q, %q", calls[0].Label, calls[1].Label, calls[2].Label, calls[3].Label)
	}
	for _, c := range calls {
		if len(c.Label) > maxLabel+8 {
			t.Errorf("label of %d bytes", len(c.Label))
		}
	}
}

func TestA15LongNameIsCut(t *testing.T) {
	t.Parallel()
	c := Normalise(1, []RawCall{{Name: strings.Repeat("ü", 5000)}})[0]
	if len(c.Tool) > maxName || !utf8.ValidString(c.Tool) {
		t.Errorf("name of %d bytes, valid %v", len(c.Tool), utf8.ValidString(c.Tool))
	}
}

// Whatever a model emits, the turn that holds it can be written and read again, and its arguments are an object.
func TestA09HistoryIsAlwaysSerialisable(t *testing.T) {
	t.Parallel()
	for i, args := range []string{
		`{"file_path":"y.md","content":"abc`, "{\"a\":\"\xff", "\xed\xa0\xbd", `"\ud83d"`, `{"a":"\ud99c"}`, "\x00", "[", strings.Repeat("[", 1<<16),
		`{"a":` + strings.Repeat("é", 1<<14), strings.Repeat(" ", 1<<14) + "{}",
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			turn := Turn{N: 1, Calls: Normalise(1, []RawCall{{"a\xff", "t\xff", args}})}
			c := turn.Calls[0]
			if !json.Valid([]byte(c.Args)) || c.Args[0] != '{' {
				t.Errorf("args %q", c.Args)
			}
			if len(c.Raw) > maxRaw || !utf8.ValidString(c.Raw) || c.Raw == "" {
				t.Errorf("raw of %d bytes, valid %v", len(c.Raw), utf8.ValidString(c.Raw))
			}
			data, err := Encode(&turn)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(&turn)
			if err != nil {
				t.Fatal(err)
			}
			var packed, plain Turn
			if err := errsOf(Decode(data, &packed), Decode(text, &plain)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(turn, packed) + cmp.Diff(turn, plain); diff != "" {
				t.Errorf("round trip:\n%s", diff)
			}
		})
	}
}

func errsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// A07: a call that is cut inside its arguments is invalid and says so; one that merely lost a property is for the schema.
func TestA07TruncatedArguments(t *testing.T) {
	t.Parallel()
	calls := Normalise(1, []RawCall{
		{"a", "write_file", `{"file_path":"w.md","content":"all"}`},
		{"b", "write_file", `{"file_path":"x.md"}`},
		{"c", "write_file", `{"file_path":"y.md","content":"abc`},
	})
	if got := []Action{calls[0].Decision.Action, calls[1].Decision.Action, calls[2].Decision.Action}; !slices.Equal(got, []Action{ActionAllow, ActionAllow, ActionInvalid}) {
		t.Errorf("actions %v", got)
	}
	if !strings.Contains(calls[2].Decision.Text, "cut off?") || calls[2].Raw != `{"file_path":"y.md","content":"abc` {
		t.Errorf("text %q, raw %q", calls[2].Decision.Text, calls[2].Raw)
	}
}

func BenchmarkNormalise(b *testing.B) {
	raw := make([]RawCall, 8)
	for i := range raw {
		raw[i] = RawCall{ID: fmt.Sprintf("call_%d", i), Name: "reserve", Args: benchArgs}
	}
	b.ReportAllocs()
	for b.Loop() {
		Normalise(1, raw)
	}
}
