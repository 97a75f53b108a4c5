package schema

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestToolError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		err         Error
		tool, label string
		want        string
	}{
		{"plain", Error{ToolFailed, " exit status 1\n"}, "bash", "c1", `TOOL_ERROR: {"errorType":"ToolFailed","error":"exit status 1","tool":"bash","callId":"c1"}`},
		{"A13 an empty text", Error{Timeout, " \n"}, "x", "c", `TOOL_ERROR: {"errorType":"Timeout","error":"Timeout","tool":"x","callId":"c"}`},
		{"no label", Error{Panic, "boom"}, "x", "", `TOOL_ERROR: {"errorType":"Panic","error":"boom","tool":"x","callId":""}`},
		{"one line", Error{ToolFailed, "a\nb\tc"}, "x", "c", `TOOL_ERROR: {"errorType":"ToolFailed","error":"a\nb\tc","tool":"x","callId":"c"}`},
		{"signs stay readable", Error{ToolFailed, "a < b && \"c\""}, "x", "c", `TOOL_ERROR: {"errorType":"ToolFailed","error":"a < b && \"c\"","tool":"x","callId":"c"}`},
		{"A22 invalid bytes", Error{ToolFailed, "a\xff"}, "x\xff", "c", "TOOL_ERROR: {\"errorType\":\"ToolFailed\",\"error\":\"a\uFFFD\",\"tool\":\"x\uFFFD\",\"callId\":\"c\"}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, ToolError(&c.err, c.tool, c.label)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestA15ToolErrorIsBounded(t *testing.T) {
	t.Parallel()
	line := ToolError(&Error{UnknownTool, strings.Repeat("é", 1<<20)}, strings.Repeat("x", 5000), "c")
	if len(line) > maxErrorText+512 || !utf8.ValidString(line) || strings.Contains(line, "\n") {
		t.Errorf("line of %d bytes", len(line))
	}
	if !json.Valid([]byte(strings.TrimPrefix(line, "TOOL_ERROR: "))) {
		t.Errorf("not JSON: %.200s", line)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		max  int
		want string
	}{
		{"abcdef", 6, "abcdef"},
		{"abcdefg", 6, "abc..."},
		{"", 0, ""},
		{"a", 0, ""},
		{"abcd", 2, ".."},
		{"abcd", 3, "..."},
		{"ab🙂cd", 8, "ab🙂cd"},
		{"ab🙂cde", 8, "ab..."},
		{"a🙂🙂", 8, "a🙂..."},
	} {
		if got := Cut(c.in, c.max); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.in, c.max, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s, n := rapid.String().Draw(t, "s"), rapid.IntRange(0, 40).Draw(t, "max")
		if got := Cut(s, n); len(got) > n || !utf8.ValidString(got) || len(s) <= n && got != s {
			t.Fatalf("Cut(%q, %d) = %q", s, n, got)
		}
	})
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	c := &Call{Run: "r", Turn: 1, Index: 2, Label: "l", Tool: "x"}
	denied := func(text string) Result {
		return Result{Run: "r", Turn: 1, Index: 2, Output: text, Error: &Error{Denied, text}}
	}
	for _, one := range []struct {
		name string
		in   Decision
		want Result
		ok   bool
	}{
		{"allow", Decision{Action: ActionAllow}, Result{}, false},
		{"invalid", Decision{Action: ActionInvalid, Type: InvalidArguments, Text: "bad"}, c.Fail(InvalidArguments, "bad"), true},
		{"deny", Decision{Action: ActionDeny, Text: "no"}, denied("DENIED: no"), true},
		{"guide", Decision{Action: ActionGuide, Text: "Use a path."}, denied("GUIDANCE: Use a path. Adjust the parameters and retry."), true},
		{"redirect", Decision{Action: ActionRedirect, Text: "See grep."}, denied("REDIRECT: See grep. Use the alternative."), true},
		{"an unknown action denies", Decision{Action: "later", Text: "no"}, denied("DENIED: no"), true},
		{"no action denies", Decision{}, denied("DENIED: "), true},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			got, ok := one.in.Outcome(c)
			if diff := cmp.Diff(one.want, got); ok != one.ok || diff != "" {
				t.Errorf("ok %v (-want +got):\n%s", ok, diff)
			}
		})
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	c := &Call{Run: "r", Turn: 1, Index: 2, Label: "l", Tool: "x"}
	if got := c.Done("a\xff"); !got.OK || got.Output != "a\uFFFD" || got.Error != nil || got.Index != 2 {
		t.Errorf("done: %+v", got)
	}
	got := c.Failf(ToolFailed, "exit %d", 1)
	if got.OK || got.Error.Error() != "ToolFailed: exit 1" || got.Output != ToolError(got.Error, "x", "l") {
		t.Errorf("fail: %+v", got)
	}
	if c.String() != "r/1.2" {
		t.Errorf("string %s", c)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	Progress(context.Background(), "nobody listens")
	var got []string
	ctx := WithProgress(context.Background(), func(s string) { got = append(got, s) })
	Progress(ctx, "a")
	Progress(ctx, "b")
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %q", got)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	sum := Usage{1, 2, 3, 4}.Add(Usage{10, 20, 30, 40})
	if sum != (Usage{11, 22, 33, 44}) || sum.Total() != 33 {
		t.Errorf("got %+v, total %d", sum, sum.Total())
	}
}
