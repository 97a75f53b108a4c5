package rules_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/executor/rules"
	"github.com/jetcrew/jetcrew/schema"
)

func Example() {
	r, err := rules.Compile(&schema.Governance{
		Tools: []schema.ToolSetting{{Ref: "orders/*", Bind: `{"tenant":"${principal.tenant}"}`}},
		Policy: &schema.Policy{Rules: []schema.PolicyRule{
			{Name: "refunds", Tools: []string{"orders/refund"}, When: "args.amount > 100", Action: schema.ActionAsk, Text: "Large refunds need a second person."},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := schema.WithScene(context.Background(), schema.Scene{Principal: schema.Principal{ID: "ada", Tenant: "acme"}})
	call := &schema.TurnCall{Queue: "orders", Tool: "refund", Args: `{"order":"A-1","amount":250}`}
	d := r.Decide(ctx, call)
	fmt.Println(d.Action, d.Rule, call.Bound)

	_, err = rules.Compile(&schema.Governance{Filters: []schema.FilterRule{{When: "args.amount >", Action: "stop"}}})
	fmt.Println(err)
	// Output:
	// ask refunds {"tenant":"acme"}
	// governance: filters[0].when: syntax error: the expression ends too early (column 14)
	// filters[0].action: "stop" is no action of a filter; there are allow, deny, guide and redirect
}

// A guard of one's own stands between the filters and the policy of an agent file, as others could before what is bound.
func ExampleRules_Steps() {
	r, err := rules.Compile(&schema.Governance{
		Policy: &schema.Policy{Rules: []schema.PolicyRule{{Name: "large", When: "args.amount > 100", Action: schema.ActionAsk}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	cents := &executor.Hook{Before: func(_ context.Context, call *schema.TurnCall) schema.Decision {
		call.Args = schema.JSONText(strings.Replace(string(call.Args), "00}", "}", 1))
		return executor.Allow()
	}}
	filters, policy, binds := r.Steps()
	guards := executor.NewGuards(nil, filters, cents, policy, binds) // or one after another in loop.Config.Guards
	for _, args := range []schema.JSONText{`{"amount":9900}`, `{"amount":25000}`} {
		call := &schema.TurnCall{Queue: "orders", Tool: "refund", Args: args}
		d := guards.Decide(context.Background(), call)
		fmt.Printf("%s %s %q\n", call.Args, d.Action, d.Rule)
	}
	// Output:
	// {"amount":99} allow ""
	// {"amount":250} ask "large"
}
