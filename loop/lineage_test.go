package loop_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// TestClaimedLineage: which runs stand above a task is what its parent's own facts say, however little the call claims.
func TestClaimedLineage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := handing(forever, false, schema.Handoff{MaxDepth: -1}, map[string]map[int]*model.Response{"tester": {1: handOver("subagent_anna")}})
		w.go1(t)
		spec := w.cfg.Agent
		spec.ID = "carl"
		deep := &schema.Open{Kind: schema.RunAgent, Agent: &spec, Principal: somebody(), Depth: schema.MaxDepth}
		for k := range schema.MaxDepth {
			deep.Lineage = append(deep.Lineage, fmt.Sprint("above-", k))
		}
		if _, err := w.bus.Append(t.Context(), "deep", schema.OpenKey(), deep, schema.Key{}); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct{ run, tool, want string }{
			{schema.ChildRun("r", 1, 0, 1), "tester", "at work above this call already"},
			{"deep", "anna", "agents may call each other 8 deep, not deeper"},
		} {
			c := &schema.Call{Run: tt.run, Turn: 1, Tool: tt.tool, Args: `{"task":"help"}`}
			w.post(schema.RunMessage{Run: c.StartKey(schema.QueueAgents).Run, Call: c})
			w.live(t)
			var r schema.Result
			if !w.bus.Fact(c.Run, c.ResultKey(schema.QueueAgents), &r) || !strings.Contains(r.Output, tt.want) {
				t.Errorf("%+v, want %q", r, tt.want)
			}
		}
	})
}

// TestAgentCalledOutsideAnyRun: who calls an agent as any other tool, outside any run, may leave it to the call to say on whose
// behalf: the open of such a call needs to say nothing.
func TestAgentCalledOutsideAnyRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTown(forever, false, nil)
		if _, err := w.bus.Append(t.Context(), "r", schema.OpenKey(), &schema.Open{Kind: schema.RunCall}, schema.Key{}); err != nil {
			t.Fatal(err)
		}
		who := schema.Principal{ID: "ann", Tenant: "acme", Scopes: []string{"tool:*"}}
		c := &schema.Call{Run: "r", Turn: 1, Tool: "anna", Args: `{"task":"help"}`, Principal: who}
		w.setUp = func(cfg *loop.HostConfig) { cfg.Principal = schema.Principal{} }
		w.post(schema.RunMessage{Run: c.StartKey(schema.QueueAgents).Run, Call: c})
		w.live(t)
		var r schema.Result
		if !w.bus.Fact("r", c.ResultKey(schema.QueueAgents), &r) || !r.OK {
			t.Errorf("result %+v", r)
		}
		var o schema.Open
		if w.bus.Fact(c.StartKey(schema.QueueAgents).Run, schema.OpenKey(), &o); cmp.Diff(who, o.Principal) != "" {
			t.Errorf("it acts for %+v", o.Principal)
		}
	})
}
