package rules_test

import (
	"context"
	"testing"

	"github.com/jetcrew/jetcrew/executor/rules"
	"github.com/jetcrew/jetcrew/schema"
)

// governed is a governance of ten rules, of which when names a condition for one filter and one rule.
func governed(when, bind string) *schema.Governance {
	return &schema.Governance{
		Environment: "production",
		Tools:       []schema.ToolSetting{{Ref: "bash", Approval: schema.ApproveAlways}, {Ref: "orders/*", Bind: schema.JSONText(bind)}},
		Filters: []schema.FilterRule{
			{Tools: []string{"sql_query", "file_write"}, Action: schema.ActionDeny},
			{Tools: []string{"brave_*"}, Action: schema.ActionGuide, Text: "x"},
			{Tools: []string{"serpapi"}, Action: schema.ActionRedirect, Text: "x"},
			{Tools: []string{"order_*"}, When: when, Action: schema.ActionDeny},
		},
		Policy: &schema.Policy{
			Presets:  []string{rules.PresetSafe, rules.PresetNoNetwork},
			Autonomy: schema.AutonomySupervised,
			Rules: []schema.PolicyRule{
				{Tools: []string{"shell/*"}, Action: schema.ActionAsk},
				{Effects: []string{schema.EffectDestructive}, Environments: []string{"production"}, Action: schema.ActionDeny},
				{Tools: []string{"order_*"}, When: when, Action: schema.ActionAsk},
				{Tools: []string{"order_*", "read_*"}, Action: schema.ActionAllow},
			},
		},
	}
}

func BenchmarkDecide(b *testing.B) {
	const when = `args.amount > 1000 || args.customer.startsWith("vip-")`
	for _, bm := range []struct{ name, when, bind string }{
		{"plain", "false", ""},
		{"bind", "", `{"tenant":"${principal.tenant}","limit":5}`},
		{"cel", when, ""},
		{"cel_bind", when, `{"tenant":"${principal.tenant}","limit":5}`},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			g := governed(bm.when, bm.bind)
			if bm.when == "" || bm.when == "false" {
				g.Filters[3].When, g.Filters[3].Tools = "", []string{"refund_*"}
				g.Policy.Rules[2].When, g.Policy.Rules[2].Tools = "", []string{"refund_*"}
			}
			r := compile(b, g)
			ctx := schema.WithScene(context.Background(), schema.Scene{Run: "r", Principal: schema.Principal{ID: "ada", Tenant: "acme"}})
			call := schema.TurnCall{
				Tool: "order_update", Queue: "orders", Effect: schema.EffectWrite,
				Args: `{"order":"A-1004","amount":25.5,"customer":"c-77","lines":[{"sku":"x","n":2},{"sku":"y","n":1}]}`,
			}
			for b.Loop() {
				c := call
				if d := r.Decide(ctx, &c); outcome(d) != schema.ActionAllow {
					b.Fatalf("%+v", d)
				}
			}
		})
	}
}

// BenchmarkCompile is what an agent pays once.
func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	g := governed(`args.amount > 1000 || args.customer.startsWith("vip-")`, `{"tenant":"${principal.tenant}"}`)
	for b.Loop() {
		if _, err := rules.Compile(g); err != nil {
			b.Fatal(err)
		}
	}
}
