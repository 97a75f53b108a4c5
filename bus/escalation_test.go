package bus_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// ladder is agents 0 to 2 of many ladders, <ladder>-<step>, each of which hands its task to the next one, twice, and then
// answers.
type ladder struct {
	mu    sync.Mutex
	specs map[string]schema.AgentSpec
}

const rungs = 3

func (l *ladder) find(name string) (schema.AgentSpec, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	spec, ok := l.specs[name]
	return spec, ok
}

func (l *ladder) Generate(_ context.Context, req *model.Request) (*model.Response, error) {
	r := &model.Response{Text: "done", Finish: schema.FinishStop, Usage: schema.Usage{Input: 10}}
	if req.Turn == 1 && len(req.Tools) > 0 {
		call := schema.RawCall{Name: req.Tools[0].Name, Args: `{"task":"help"}`}
		r.Calls, r.Finish = []schema.RawCall{call, call}, schema.FinishCalls
	}
	return r, nil
}

// drawAgent is an agent with any limits and authority, which may hand over to the next one.
func drawAgent(t *rapid.T, ladder string, step int) schema.AgentSpec {
	spec := schema.AgentSpec{
		ID: fmt.Sprintf("%s-%d", ladder, step), Parallel: schema.Parallel{Calls: rapid.Bool().Draw(t, "parallel")},
		Model: schema.ModelSpec{Price: schema.Price{Input: 1e3}},
		Limits: schema.Limits{
			MaxSteps: rapid.SampledFrom([]int{0, 3, 8, 20}).Draw(t, "steps"), MaxTokens: rapid.SampledFrom([]int64{0, 30, 100, 300}).Draw(t, "tokens"),
			MaxCost: rapid.SampledFrom([]float64{0, 0.03, 0.5, 1}).Draw(t, "dollars"),
		},
		Governance: &schema.Governance{Authority: drawAuthority(t)},
	}
	if step+1 < rungs {
		spec.Governance.Subagents = []schema.Subagent{{
			Agent: fmt.Sprintf("%s-%d", ladder, step+1), Session: rapid.SampledFrom([]string{"", schema.SessionReuse}).Draw(t, "session"),
			Handoff: &schema.Handoff{MaxDepth: rapid.SampledFrom([]int{-1, 0, 2, 3}).Draw(t, "depth"), TimeoutMS: rapid.Int64Range(0, 1).Draw(t, "timeout") * 30_000},
		}}
	}
	return spec
}

func drawAuthority(t *rapid.T) []string {
	scopes := []string{"tool:agents/*", "effect:destructive"} // an agent's tool declares no effect
	return append(scopes, rapid.SliceOfN(rapid.SampledFrom([]string{
		"tool:read_*", "tool:shell/*", "effect:read", "effect:write", "spend:0.5", "spend:2", "until:2040-01-01T00:00:00Z", "tenant:acme",
	}), 0, 4).Draw(t, "authority")...)
}

// TestD22NothingIsGainedBelow: chains of agents with any limits, policies and authorities, and calls published straight to the
// queue that claim everything: no run below another one has a wider authority, a larger budget, a later deadline or a
// smaller depth than that has, and who its principal is stays.
func TestD22NothingIsGainedBelow(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b, hosting := connect(t, srv), connect(t, srv)
	l := &ladder{specs: map[string]schema.AgentSpec{}}
	h, err := loop.NewHost(loop.HostConfig{
		Config: loop.Config{Bus: hosting, Instance: hosting.Instance()}, Find: l.find,
		Equip: func(context.Context, schema.AgentSpec) (loop.Model, loop.Registry, error) { return l, nil, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	hosted(t, hosting, bus.Hosting{Slots: 8, Host: h})
	children, forged := 0, 0
	for seed := range 25 {
		who := schema.Principal{ID: "ann", Tenant: "acme"}
		name := fmt.Sprint("ladder", seed)
		rapid.Custom(func(t *rapid.T) bool {
			who.Scopes = drawAuthority(t)
			l.mu.Lock()
			defer l.mu.Unlock()
			for step := range rungs {
				spec := drawAgent(t, name, step)
				l.specs[spec.ID] = spec
			}
			return true
		}).Example(seed)
		run := schema.NewID()
		if err := b.StartRun(t.Context(), &schema.Call{Run: run, Tool: name + "-0", Args: `{"task":"go"}`, Principal: who}); err != nil {
			t.Fatal(err)
		}
		waitClosed(t, b, run, 30*time.Second)
		below := []string{run}
		for len(below) > 0 {
			parent := below[0]
			below = below[1:]
			above := openOf(t, b, parent)
			if above == nil {
				t.Fatalf("run %s has no open", parent)
			}
			for i := range 2 {
				child := schema.ChildRun(parent, 1, i, 1)
				if o := openOf(t, b, child); o != nil {
					children++
					checkBelow(t, above, o)
					below = append(below, child)
				}
			}
			if len(above.Agent.Governance.Subagents) == 0 {
				continue
			}
			claim := &schema.Call{
				Run: parent, Turn: 1, Index: 7, Tool: above.Agent.Governance.Subagents[0].Agent, As: above.Agent.Governance.Subagents[0].ToolName(), Source: schema.SourceSubagent,
				Args: `{"task":"help"}`, Principal: schema.Principal{ID: "root", Tenant: "globex", Scopes: []string{"tool:*"}}, Budget: schema.Budget{Steps: 1 << 20, Tokens: 1 << 40, Cost: 1 << 20},
			}
			r, err := b.Dispatch(t.Context(), claim, schema.QueueAgents, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			if o := openOf(t, b, claim.StartKey(schema.QueueAgents).Run); o != nil {
				forged++
				checkBelow(t, above, o)
			} else if r.OK {
				t.Errorf("a call without a run: %+v", r)
			}
		}
	}
	t.Logf("%d children, %d started by forged calls", children, forged)
	if children < 40 || forged < 20 {
		t.Errorf("only %d children, %d started by forged calls", children, forged)
	}
}

func openOf(t *testing.T, b *bus.Bus, run string) *schema.Open {
	t.Helper()
	data, err := b.Look(t.Context(), run, schema.OpenKey())
	if err != nil {
		t.Fatal(err)
	}
	o := new(schema.Open)
	if data == nil {
		return nil
	}
	if err := schema.Decode(data, o); err != nil {
		t.Fatal(err)
	}
	return o
}

// checkBelow holds the first fact of a run against that of the run above it.
func checkBelow(t *testing.T, above, o *schema.Open) {
	t.Helper()
	if o.Principal.ID != above.Principal.ID || o.Principal.Tenant != above.Principal.Tenant {
		t.Errorf("the principal is %+v below %+v", o.Principal, above.Principal)
	}
	if o.Depth != above.Depth+1 || len(o.Lineage) != o.Depth {
		t.Errorf("depth %d, lineage %v below depth %d", o.Depth, o.Lineage, above.Depth)
	}
	policy := above.Agent.Governance.Subagents[0].Handoff
	if limit := policy.MaxDepth; limit > 0 && o.Depth > limit || limit == 0 && o.Depth > 1 {
		t.Errorf("depth %d under %+v", o.Depth, policy)
	}
	for _, queue := range []string{"shell", "files"} {
		for _, tool := range []string{"bash", "read_file"} {
			for _, effect := range []string{"", schema.EffectRead, schema.EffectWrite} {
				c := schema.Scoped{Queue: queue, Tool: tool, Effect: effect, Tenant: o.Principal.Tenant}
				if schema.Permits(o.Principal.Scopes, c, time.Now()) == "" && schema.Permits(above.Principal.Scopes, c, time.Now()) != "" {
					t.Errorf("%+v is allowed by %v, not by %v", c, o.Principal.Scopes, above.Principal.Scopes)
				}
			}
		}
	}
	usd, ok := schema.SpendLimit(o.Principal.Scopes)
	if limit, bounded := schema.SpendLimit(above.Principal.Scopes); bounded && (!ok || usd > limit) {
		t.Errorf("%v may spend more than %v", o.Principal.Scopes, above.Principal.Scopes)
	}
	less := func(what string, got float64, limits ...float64) {
		for _, limit := range limits {
			if limit > 0 && (got <= 0 || got > limit) {
				t.Errorf("%s: %v, the run above has %v", what, got, limit)
			}
		}
	}
	lim := above.Agent.Limits
	less("steps", float64(o.Budget.Steps), float64(lim.MaxSteps), float64(above.Budget.Steps))
	less("tokens", float64(o.Budget.Tokens), float64(lim.MaxTokens), float64(above.Budget.Tokens))
	less("dollars", o.Budget.Cost, lim.MaxCost, above.Budget.Cost)
	less("deadline", float64(o.DeadlineMS), float64(above.DeadlineMS))
	if strings.HasSuffix(o.Agent.ID, "-0") {
		t.Errorf("the first agent stands below %s", above.Agent.ID)
	}
}
