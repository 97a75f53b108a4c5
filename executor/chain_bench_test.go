package executor_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/executor/rules"
	"github.com/jetcrew/jetcrew/schema"
)

// permit is a guard like a policy: rules of which the first that matches holds, and the scopes of the run.
type permit []struct {
	tool   string
	action schema.Action
}

func (p permit) Decide(ctx context.Context, c *schema.TurnCall) schema.Decision {
	principal := schema.SceneOf(ctx).Principal
	if why := schema.Permits(principal.Scopes, schema.Scoped{Queue: c.Queue, Tool: c.Tool, Effect: c.Effect, Tenant: principal.Tenant}, time.Now()); why != "" {
		return executor.Block(why)
	}
	for _, rule := range p {
		if schema.MatchTool(rule.tool, c.Queue, c.Tool) {
			return schema.Decision{Action: rule.action}
		}
	}
	return schema.Decision{}
}

func (permit) Settle(context.Context, *schema.TurnCall, *schema.Result) (string, bool) {
	return "", false
}

// silent hears and does nothing.
type silent struct{}

func (silent) Start(context.Context, *schema.Call)                                  {}
func (silent) Complete(context.Context, *schema.Call, schema.Result, time.Duration) {}

// parts are a call alone, and what may stand around it.
type parts struct {
	ctx            context.Context
	guards         *executor.Guards
	ruled          *executor.Guards // by the rules of an agent file, of which two have a condition that is about the call
	plain, wrapped *executor.Set    // without and with a listener
	turn           schema.TurnCall
	bare, scoped   schema.Call // without and with authority and bound values
	result         schema.Result
}

func newParts(tb testing.TB) *parts {
	tb.Helper()
	principal := schema.Principal{ID: "u", Tenant: "acme", Scopes: []string{"tool:shop/*", "effect:read", "effect:write", "tenant:acme", "until:2999-01-01T00:00:00Z"}}
	plain, err := executor.NewSet("shop", executor.Tool{
		Tool: schema.Tool{Name: "find_orders", Description: "Finds orders.", Effect: schema.EffectRead},
		Run:  func(context.Context, *schema.Call) (string, error) { return "none", nil },
	})
	if err != nil {
		tb.Fatal(err)
	}
	p := &parts{
		ctx:   schema.WithScene(tb.Context(), schema.Scene{Run: "r1", Agent: "shopper", Principal: principal}),
		plain: plain, wrapped: plain.With(executor.NewListening(silent{}).Wrap),
		turn: schema.TurnCall{Label: "c1", Tool: "find_orders", Queue: "shop", Effect: schema.EffectRead, Args: `{"query":"open orders of last week","limit":20,"sort":{"by":"date"}}`},
	}
	p.bare = schema.Call{Run: "r1", Turn: 1, Tool: p.turn.Tool, Args: p.turn.Args}
	p.scoped = p.bare
	p.scoped.Principal, p.scoped.Bound = principal, `{"tenant":"acme"}`
	p.result = p.bare.Done("none")
	hook := &executor.Hook{
		Before: func(context.Context, *schema.TurnCall) schema.Decision { return executor.Allow() },
		After:  func(context.Context, *schema.TurnCall, *schema.Result) (string, bool) { return "", false },
	}
	const when = `args.limit > 1000 || args.query.startsWith("all ")`
	compiled, err := rules.Compile(&schema.Governance{
		Tools:   []schema.ToolSetting{{Ref: "shop/*", Bind: `{"tenant":"${principal.tenant}"}`}},
		Filters: []schema.FilterRule{{Tools: []string{"sql_query", "file_write"}, Action: schema.ActionDeny}, {Tools: []string{"find_*"}, When: when, Action: schema.ActionDeny}},
		Policy: &schema.Policy{Presets: []string{rules.PresetSafe}, Rules: []schema.PolicyRule{
			{Tools: []string{"find_*"}, When: when, Action: schema.ActionAsk}, {Tools: []string{"find_*"}, Action: schema.ActionAllow},
		}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	p.ruled = executor.NewGuards(nil, hook, compiled)
	p.guards = executor.NewGuards(nil, hook,
		executor.NewFilter(func(_ context.Context, c *schema.TurnCall) schema.Decision {
			if slices.Contains([]string{"sql_query", "file_write"}, c.Tool) {
				return executor.Block("")
			}
			return executor.Allow()
		}),
		permit{{"rm_*", schema.ActionDeny}, {"web/*", schema.ActionAsk}, {"find_*", schema.ActionAllow}},
		executor.Bind("shop/*", tenantOf))
	return p
}

// decide is the orchestrator's part of the chain.
func (p *parts) decide(tb testing.TB) { p.ask(tb, p.guards) }
func (p *parts) rules(tb testing.TB)  { p.ask(tb, p.ruled) }

func (p *parts) ask(tb testing.TB, guards *executor.Guards) {
	c := p.turn
	if d := guards.Decide(p.ctx, &c); d.Action != schema.ActionAllow || c.Bound != p.scoped.Bound {
		tb.Fatalf("%+v, bound %s", d, c.Bound)
	}
	guards.Settle(p.ctx, &c, &p.result)
}

func (p *parts) execute(tb testing.TB, set *executor.Set, c *schema.Call) {
	if r, _ := set.Execute(p.ctx, c); !r.OK {
		tb.Fatal(r.Output)
	}
}

func (p *parts) alone(tb testing.TB)     { p.execute(tb, p.plain, &p.bare) }
func (p *parts) authority(tb testing.TB) { p.execute(tb, p.plain, &p.scoped) }
func (p *parts) listener(tb testing.TB)  { p.execute(tb, p.wrapped, &p.bare) }

func (p *parts) chain(tb testing.TB) {
	p.decide(tb)
	p.execute(tb, p.wrapped, &p.scoped)
}

// conditions is the chain with the rules of an agent file.
func (p *parts) conditions(tb testing.TB) {
	p.rules(tb)
	p.execute(tb, p.wrapped, &p.scoped)
}

// BenchmarkChain is what the whole chain adds to a call: alone is the call itself, chain the same call with everything
// around it, conditions with the rules of an agent file in place of guards in Go, the others have one part of that. The limit is
// 15 µs and 15 allocations between alone and either chain.
func BenchmarkChain(b *testing.B) {
	p := newParts(b)
	for _, part := range []struct {
		name string
		do   func(testing.TB)
	}{{"alone", p.alone}, {"guards", p.decide}, {"rules", p.rules}, {"authority", p.authority}, {"listener", p.listener}, {"chain", p.chain}, {"conditions", p.conditions}} {
		b.Run(part.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				part.do(b)
			}
		})
	}
}

// The allocations of the chain are the same on every machine. Not parallel, since they are counted.
func TestChainAllocates(t *testing.T) {
	p := newParts(t)
	least := func(do func(testing.TB)) float64 {
		n := math.Inf(1)
		for range 5 { // the race detector empties pools at random
			n = min(n, testing.AllocsPerRun(100, func() { do(t) }))
		}
		return n
	}
	alone := least(p.alone)
	for name, chain := range map[string]func(testing.TB){"guards in Go": p.chain, "rules of an agent file": p.conditions} {
		if added := least(chain) - alone; added > 15 {
			t.Errorf("the chain with %s adds %v allocations to the %v of a call, want at most 15", name, added, alone)
		}
	}
}
