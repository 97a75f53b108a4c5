package executor_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
)

// What the loop takes.
var (
	_ loop.Guard = (*executor.Filter)(nil)
	_ loop.Guard = (*executor.Hook)(nil)
	_ loop.Guard = (*executor.Guards)(nil)
	_ loop.Guard = executor.Guard(nil)

	_ loop.Authorizer = (*executor.Filter)(nil)
	_ loop.Authorizer = (*executor.Guards)(nil)
	_ loop.Authorizer = executor.Authorizer(nil)

	_ loop.Listener = (*executor.Listening)(nil)
	_ loop.Listener = executor.Listeners(nil)
	_ loop.Listener = executor.Listener(nil)
)

func turnCall(tool, args string) *schema.TurnCall {
	return &schema.TurnCall{Label: "c1", Tool: tool, Args: schema.JSONText(args), Queue: "test", Effect: schema.EffectWrite}
}

// reads is what the model reads of a call that was decided so, "" when it runs.
func reads(d schema.Decision) string {
	if d.Action == "" {
		return ""
	}
	r, _ := d.Outcome(&schema.Call{Tool: "t", Label: "c1"})
	return r.Output
}

// steer is the example of register-tools, "Tool call filters".
func steer(_ context.Context, call *schema.TurnCall) schema.Decision {
	args, err := executor.Arguments(call.Args)
	_, query := args["query"]
	switch {
	case err != nil || slices.Contains([]string{"sql_query", "file_write"}, call.Tool):
		return executor.Block("")
	case call.Tool == "brave_search" && !query:
		return executor.Guide("Pass the search terms in 'query'.")
	case call.Tool == "serpapi":
		return executor.Fallback("Use brave_search instead.")
	}
	return executor.Allow()
}

// The table "What the model sees" of register-tools.
func TestFilterRegisterToolsWhatTheModelSees(t *testing.T) {
	t.Parallel()
	readOnly := executor.Predicate(func(tool string, _ map[string]any) bool { return tool != "file_write" })
	tests := []struct {
		name       string
		filter     executor.FilterFunc
		tool, args string
		want       string
	}{
		{"none allows", nil, "file_write", "{}", ""},
		{"allow", steer, "brave_search", `{"query":"x"}`, ""},
		{"block", steer, "sql_query", "{}", "DENIED: this agent may not make this call"},
		{"guide", steer, "brave_search", "{}", "GUIDANCE: Pass the search terms in 'query'. Adjust the parameters and retry."},
		{"fallback", steer, "serpapi", "{}", "REDIRECT: Use brave_search instead. Use the alternative."},
		{"predicate allows", readOnly, "file_read", "{}", ""},
		{"predicate blocks", readOnly, "file_write", `{"path":"a"}`, "DENIED: this agent may not make this call"},
		{"predicate cannot read the arguments", readOnly, "file_read", "[", "DENIED: this agent may not make this call"},
		{"reason", func(context.Context, *schema.TurnCall) schema.Decision { return executor.Block("not on Sundays") }, "a", "{}", "DENIED: not on Sundays"},
		{"unknown action", func(context.Context, *schema.TurnCall) schema.Decision {
			return schema.Decision{Action: "maybe", Text: "odd"}
		}, "a", "{}", "DENIED: odd"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := executor.NewFilter(tt.filter)
			d := f.Decide(t.Context(), turnCall(tt.tool, tt.args))
			if got := reads(d); got != tt.want {
				t.Errorf("the model reads %q, want %q", got, tt.want)
			}
			if tt.want != "" && d.Rule != "filter" {
				t.Errorf("rule %q, want filter", d.Rule)
			}
			if diff := cmp.Diff(d, f.Authorize(t.Context(), turnCall(tt.tool, tt.args))); diff != "" {
				t.Errorf("an approved call: %s", diff)
			}
		})
	}
}

// Rules name a tool as its queue knows it, whatever name the model sees; a number keeps its digits.
func TestFilterSeesTheOriginal(t *testing.T) {
	t.Parallel()
	var got []any
	f := executor.NewFilter(executor.Predicate(func(tool string, args map[string]any) bool {
		got = append(got, tool, args["n"])
		return true
	}))
	call := turnCall("write_2", `{"n":1.50}`)
	call.Target = "write"
	f.Decide(t.Context(), call)
	f.Decide(t.Context(), turnCall("read", "{}"))
	if diff := cmp.Diff([]any{"write", json.Number("1.50"), "read", nil}, got); diff != "" {
		t.Error(diff)
	}
}

func TestFilterChangesNothing(t *testing.T) {
	t.Parallel()
	f := executor.NewFilter(func(_ context.Context, c *schema.TurnCall) schema.Decision {
		c.Args, c.Bound = `{"a":2}`, `{"tenant":"other"}`
		return executor.Allow()
	})
	call := turnCall("a", `{"a":1}`)
	f.Decide(t.Context(), call)
	if call.Args != `{"a":1}` || call.Bound != "" {
		t.Errorf("the filter changed the call: %+v", call)
	}
	if _, changed := f.Settle(t.Context(), call, &schema.Result{Output: "x"}); changed {
		t.Error("the filter changed a result")
	}
}

// TestFilterIsReplaced is for the race detector, too.
func TestFilterIsReplaced(t *testing.T) {
	t.Parallel()
	var f executor.Filter
	if got := reads(f.Decide(t.Context(), turnCall("sql_query", "{}"))); got != "" {
		t.Errorf("the zero filter: %q", got)
	}
	var runs sync.WaitGroup
	for range 4 {
		runs.Go(func() {
			for range 1000 {
				f.Decide(t.Context(), turnCall("sql_query", "{}"))
			}
		})
	}
	for range 100 {
		f.Replace(steer)
		f.Replace(nil)
	}
	f.Replace(steer)
	if got := reads(f.Decide(t.Context(), turnCall("sql_query", "{}"))); got == "" {
		t.Error("the new filter does not hold")
	}
	runs.Wait()
}
