package rules_test

import (
	"context"
	"fmt"

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
