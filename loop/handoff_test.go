package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// handing is a town in which tester has the sub-agents anna and bert under a policy.
func handing(left int, after bool, h schema.Handoff, answers map[string]map[int]*model.Response) *town {
	w := newTown(left, after, answers)
	w.shape = func(spec *schema.AgentSpec) {
		if spec.ID == "tester" {
			spec.Governance = &schema.Governance{Subagents: []schema.Subagent{{Agent: "anna"}, {Agent: "bert", Name: "the_writer"}}, Handoff: &h}
		}
	}
	return w
}

func handOver(names ...string) *model.Response {
	r := &model.Response{Finish: schema.FinishCalls, Usage: schema.Usage{Input: 10, Output: 5}}
	for _, n := range names {
		r.Calls = append(r.Calls, schema.RawCall{Name: n, Args: `{"task":"help"}`})
	}
	return r
}

var broken = &model.Error{Kind: model.Refused, Message: "the model is broken"}

// go1 has the task done in the run r of tester and returns its memory.
func (w *town) go1(t *testing.T) *memory.Run {
	t.Helper()
	w.post(starter("r", `{"task":"go"}`))
	w.live(t)
	m := w.memory(t, "r")
	if m.Closed() == nil || m.Closed().State != "done" {
		t.Fatalf("close %+v, facts %v", m.Closed(), w.bus.Keys("r"))
	}
	return m
}

// TestSubagentResult: a sub-agent is a tool whose result says who answered, and what it used counts at its parent.
func TestSubagentResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := handing(forever, false, schema.Handoff{}, map[string]map[int]*model.Response{
			"tester": {1: handOver("subagent_anna", "the_writer")},
			"anna":   {1: {Calls: raw("count"), Finish: schema.FinishCalls, Usage: schema.Usage{Input: 100}}, 2: {Text: "<done>", Usage: schema.Usage{Output: 7}, Finish: schema.FinishStop}},
			"bert":   {1: {Text: "written", Usage: schema.Usage{Input: 1000}, Finish: schema.FinishStop}},
		})
		m := w.go1(t)
		want := []string{
			`{"subagent":"anna","toolName":"subagent_anna","output":"<done>","steps":2}`,
			`{"subagent":"bert","toolName":"the_writer","output":"written","steps":1}`,
		}
		for i, text := range want {
			if r := m.Result(1, i); r.Output != text || !r.OK || r.Spent.Attempts != 1 {
				t.Errorf("result %+v, want %s", r, text)
			}
		}
		if got := m.Closed().Usage; got.Total() != 15+107+1000 {
			t.Errorf("usage %+v", got)
		}
		var open schema.Open
		if !w.bus.Fact(schema.ChildRun("r", 1, 1, 1), schema.OpenKey(), &open) || open.Handoff.Name != "the_writer" || !slices.Equal(open.Lineage, []string{"r"}) {
			t.Errorf("open %+v", open)
		}
	})
}

// TestHandoffPolicy goes through what a policy refuses (seed-notes, Handoff, and weak points 5, 13 to 15): each refusal
// is a DENIED result with its reason, no run is opened, and the run goes on.
func TestHandoffPolicy(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		policy schema.Handoff
		filter loop.InputFilter
		want   []string // of the calls of subagent_anna and the_writer; "" ends well
	}{
		"empty lists let all through": {want: []string{"", ""}},
		"not in allowedTools":         {policy: schema.Handoff{Allowed: []string{"the_writer"}}, want: []string{"DENIED: tool is not in allowedTools", ""}},
		"the agent's id is no name":   {policy: schema.Handoff{Allowed: []string{"bert"}}, want: []string{"DENIED: tool is not in allowedTools", "DENIED: tool is not in allowedTools"}},
		"denied wins": {
			policy: schema.Handoff{Allowed: []string{"subagent_anna"}, Denied: []string{"subagent_anna"}},
			want:   []string{"DENIED: tool is in deniedTools", "DENIED: tool is not in allowedTools"},
		},
		"fallback of a refusal": {
			policy: schema.Handoff{Denied: []string{"subagent_anna"}, OnDenied: schema.HandoffFallback, Fallback: "look it up yourself"},
			want:   []string{"DENIED: tool is in deniedTools. Fallback instead of the sub-agent's answer: look it up yourself", ""},
		},
		"input filter refuses": {
			filter: func(context.Context, string, string) (string, string, error) { return "", "", errors.New("too secret") },
			want:   []string{"DENIED: the input filter refused the task: too secret", ""},
		},
		"input filter panics": {
			filter: func(context.Context, string, string) (string, string, error) { panic("boom") },
			want:   []string{"DENIED: the input filter failed", ""},
		},
		"input filter leaves nothing": {
			filter: func(context.Context, string, string) (string, string, error) { return "", "", nil },
			want:   []string{"TOOL_ERROR", ""},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := handing(forever, false, tt.policy, map[string]map[int]*model.Response{"tester": {1: handOver("subagent_anna", "the_writer")}})
				w.setUp = func(c *loop.HostConfig) { c.InputFilters = map[string]loop.InputFilter{"subagent_anna": tt.filter} }
				m := w.go1(t)
				for i, want := range tt.want {
					r := m.Result(1, i)
					if r.OK != (want == "") || !strings.HasPrefix(r.Output, want) {
						t.Errorf("result %d: %+v, want %q", i, r, want)
					}
					if got := len(w.bus.Keys(schema.ChildRun("r", 1, i, 1))) > 0; got != (want == "") {
						t.Errorf("call %d has opened a run: %t", i, got)
					}
				}
			})
		})
	}
}

// TestHandoffDepth: who may hand over how deep, also when the calls of a turn run at once (seed-notes, weak point 13).
func TestHandoffDepth(t *testing.T) {
	t.Parallel()
	for depth, want := range map[int]string{0: "handoff depth 2 exceeds maxDepth 1", 2: "", -1: ""} {
		t.Run(fmt.Sprint("maxDepth ", depth), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := handing(forever, false, schema.Handoff{}, map[string]map[int]*model.Response{
					"tester": {1: handOver("subagent_anna")},
					"anna":   {1: handOver("subagent_carl", "subagent_carl", "subagent_carl")},
				})
				of := w.shape
				w.shape = func(spec *schema.AgentSpec) {
					if of(spec); spec.ID == "anna" {
						spec.Governance = &schema.Governance{Subagents: []schema.Subagent{{Agent: "carl", Handoff: &schema.Handoff{MaxDepth: depth}}}}
					}
				}
				w.go1(t)
				anna := w.memory(t, schema.ChildRun("r", 1, 0, 1))
				for i := range 3 {
					if r := anna.Result(1, i); r.OK != (want == "") || want != "" && r.Output != "DENIED: "+want {
						t.Errorf("result %+v", r)
					}
				}
			})
		})
	}
}

// TestD22SubagentScopes: a sub-agent whose file says more than its parent may do gets nothing more, whatever a message
// on the queue says.
func TestD22SubagentScopes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := handing(forever, false, schema.Handoff{}, map[string]map[int]*model.Response{
			"tester": {1: handOver("subagent_anna")}, "anna": {1: {Calls: raw("count"), Finish: schema.FinishCalls}},
		})
		of := w.shape
		w.shape = func(spec *schema.AgentSpec) {
			if of(spec); spec.ID == "anna" {
				spec.Governance = &schema.Governance{Authority: []string{"tool:*", "tool:git_stash", "effect:write"}}
			}
		}
		m := starter("r", `{"task":"go"}`)
		m.Call.Principal = schema.Principal{ID: "ann", Tenant: "acme", Scopes: []string{"tool:agents/*", "tool:read_*", "effect:read", "effect:write", "effect:destructive"}}
		w.post(m)
		w.live(t)
		forged := &schema.Call{
			Run: "r", Turn: 1, Index: 5, Tool: "anna", As: "subagent_anna", Source: schema.SourceSubagent, Args: `{"task":"help"}`,
			Principal: schema.Principal{ID: "root", Tenant: "all", Scopes: []string{"tool:*"}},
		}
		w.post(schema.RunMessage{Run: schema.ChildRun("r", 1, 5, 1), Call: forged})
		w.live(t)
		if r := w.memory(t, schema.ChildRun("r", 1, 0, 1)).Result(1, 0); r.Error == nil || r.Error.Type != schema.Denied || len(w.ran) > 0 {
			t.Errorf("anna called count: %+v", r)
		}
		for _, index := range []int{0, 5} {
			var open schema.Open
			if !w.bus.Fact(schema.ChildRun("r", 1, index, 1), schema.OpenKey(), &open) || open.Principal.ID != "ann" || open.Principal.Tenant != "acme" {
				t.Fatalf("open %+v", open)
			}
			for tool, allowed := range map[string]bool{"read_file": true, "git_stash": false} {
				why := schema.Permits(open.Principal.Scopes, schema.Scoped{Queue: "x", Tool: tool, Effect: schema.EffectWrite, Tenant: "acme"}, time.Now())
				if (why == "") != allowed {
					t.Errorf("call %d, %s: %q; scopes %v", index, tool, why, open.Principal.Scopes)
				}
			}
			if why := schema.Permits(open.Principal.Scopes, schema.Scoped{Queue: "x", Tool: "read_file", Effect: schema.EffectRead}, time.Now()); why == "" {
				t.Errorf("call %d may read, which its own authority leaves out", index)
			}
		}
	})
}

// TestHandoffIsCheckedAgain: a call that no parent's policy let through is refused where it would start.
func TestHandoffIsCheckedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := handing(forever, false, schema.Handoff{Denied: []string{"the_writer"}}, nil)
		w.go1(t)
		for i, tt := range []struct {
			call schema.Call
			want string
		}{
			{schema.Call{Run: "r", Tool: "bert", As: "the_writer"}, "DENIED: tool is in deniedTools"},
			{schema.Call{Run: "r", Tool: "root", As: "subagent_anna"}, "DENIED: the run that hands over this task has no such sub-agent"},
			{schema.Call{Run: "nobody", Tool: "anna", As: "subagent_anna"}, "DENIED: no run is known that could hand over this task"},
			{schema.Call{Run: "r", Tool: "tester", As: "subagent_anna"}, `TOOL_ERROR: {"errorType":"ToolFailed","error":"agent \"tester\" is at work above`},
		} {
			c := tt.call
			c.Turn, c.Index, c.Source, c.Args = 1, i, schema.SourceSubagent, `{"task":"help"}`
			w.post(schema.RunMessage{Run: c.StartKey(schema.QueueAgents).Run, Call: &c})
			w.live(t)
			var r schema.Result
			if !w.bus.Fact(c.Run, c.ResultKey(schema.QueueAgents), &r) || !strings.HasPrefix(r.Output, tt.want) {
				t.Errorf("%+v, want %q", r, tt.want)
			}
		}
	})
}

// TestParentThatCannotBeRead: a task is not started when the policies and bounds of the run above it cannot be read: they
// might forbid it.
func TestParentThatCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := handing(forever, false, schema.Handoff{}, nil)
		w.go1(t)
		if _, err := w.bus.Append(t.Context(), "broken", schema.OpenKey(), &schema.Call{Agent: "no agent's spec"}, schema.Key{}); err != nil {
			t.Fatal(err)
		}
		c := &schema.Call{Run: "broken", Turn: 1, Tool: "anna", Args: `{"task":"help"}`}
		w.post(schema.RunMessage{Run: c.StartKey(schema.QueueAgents).Run, Call: c})
		w.live(t)
		var r schema.Result
		if !w.bus.Fact(c.Run, c.ResultKey(schema.QueueAgents), &r) || !strings.HasPrefix(r.Output, "DENIED: ") || len(w.bus.Keys(c.StartKey(schema.QueueAgents).Run)) > 0 {
			t.Errorf("%+v", r)
		}
	})
}

// TestHandoffEvents: each handoff_start has its handoff_end, refused ones and those whose input filter fails too
// (seed-notes, Handoff, and weak points 14 and 16).
func TestHandoffEvents(t *testing.T) {
	t.Parallel()
	r := newRig(looptest.Calls(
		schema.RawCall{ID: "a", Name: "the_writer", Args: `{"task":"help"}`}, schema.RawCall{ID: "b", Name: "subagent_anna", Args: `{"task":"fail"}`},
		schema.RawCall{ID: "c", Name: "subagent_anna", Args: `{"task":"help"}`}, schema.RawCall{ID: "d", Name: "subagent_anna", Args: `{"task":5}`},
		schema.RawCall{ID: "e", Name: "subagent_dora", Args: `{"task":"help"}`}, schema.RawCall{ID: "f", Name: "subagent_anna", Args: `{"task":"refuse"}`},
		schema.RawCall{ID: "g", Name: "ok"},
	), looptest.Text("done"))
	for _, id := range []string{"anna", "dora"} {
		r.bus.Tool(schema.Tool{Name: id, Queue: schema.QueueAgents}, func(_ context.Context, c *schema.Call) (string, error) {
			switch {
			case id == "dora":
				return "", broken
			case strings.Contains(string(c.Args), "fail"): // as the sub-agent's orchestrator writes it
				return "", errors.New(schema.WithFallback(broken.Error(), "guess"))
			}
			return "fine", nil
		})
	}
	r.cfg.Agent.Parallel.Calls = true
	r.cfg.InputFilters = map[string]loop.InputFilter{"subagent_anna": func(_ context.Context, task, known string) (string, string, error) {
		if task == "refuse" {
			return "", "", errors.New("no")
		}
		return task, known, nil
	}}
	r.cfg.Agent.Governance = &schema.Governance{
		Subagents: []schema.Subagent{{Agent: "anna"}, {Agent: "bert", Name: "the_writer"}, {Agent: "dora", Handoff: &schema.Handoff{}}},
		Handoff:   &schema.Handoff{Denied: []string{"the_writer"}, OnError: schema.HandoffFallback, Fallback: "guess"},
	}
	r.run(t)
	status := map[string][]string{}
	for _, e := range r.events.List() {
		if e.Handoff == nil {
			continue
		}
		status[e.Handoff.ID] = append(status[e.Handoff.ID], e.Handoff.Status)
		if e.Handoff.Depth != 1 || e.Handoff.Session != schema.SessionNew || (e.Type == loop.EventHandoffEnd) != (e.Handoff.Status != loop.HandoffStarting) {
			t.Errorf("%s %+v", e.Type, e.Handoff)
		}
	}
	want := map[string][]string{
		"handoff:a": {"starting", "denied"}, "handoff:b": {"starting", "fallback"}, "handoff:c": {"starting", "completed"},
		"handoff:e": {"starting", "failed"}, "handoff:f": {"starting", "denied"},
	}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Error(diff)
	}
}

// TestInputFilter: what the filter makes of a task is what is decided about, recorded and told.
func TestInputFilter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := handing(forever, false, schema.Handoff{}, map[string]map[int]*model.Response{"tester": {1: handOver("subagent_anna")}})
		w.setUp = func(c *loop.HostConfig) {
			c.InputFilters = map[string]loop.InputFilter{"subagent_anna": func(_ context.Context, task, known string) (string, string, error) {
				return "please " + task, known + "it is late", nil
			}}
		}
		m := w.go1(t)
		var args schema.AgentArgs
		if c := m.Turn(1).Calls[0]; json.Unmarshal([]byte(c.Args), &args) != nil || args.Task != "please help" || c.Raw != `{"task":"help"}` {
			t.Errorf("call %+v", c)
		}
		if say := w.memory(t, schema.ChildRun("r", 1, 0, 1)).Say(1); say.Text != "please help\n\nWhat is known already:\nit is late" {
			t.Errorf("said %q", say.Text)
		}
	})
}

// TestSubagentsAreChecked: what an agent says about its sub-agents is wrong before anything runs.
func TestSubagentsAreChecked(t *testing.T) {
	t.Parallel()
	for want, list := range map[string][]schema.Subagent{
		`the sub-agents a.b and a b have the same tool name "subagent_a_b"`: {{Agent: "a.b"}, {Agent: "a b"}},
		"is the agent itself":         {{Agent: "tester"}},
		"names no agent":              {{}},
		`session "old"`:               {{Agent: "a", Session: "old"}},
		"must not be negative":        {{Agent: "a", Handoff: &schema.Handoff{MaxRetries: -1}}},
		"is both the sub-agent anna ": {{Agent: "anna", Name: "ok"}},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			r := newRig()
			r.cfg.Agent.Governance = &schema.Governance{Subagents: list}
			a, err := loop.New(r.cfg)
			if err == nil { // what comes from a registry is known when it is asked
				var answer schema.Answer
				answer, err = a.Run(t.Context(), "go")
				if err == nil {
					err = errors.New(answer.Error)
				}
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}
