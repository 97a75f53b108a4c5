// Command guarded puts checks of its own around the executor: a call that nobody has approved does not run, and every
// call is written down. The model reads the refusal and goes on.
//
//	OPENAI_API_KEY=... go run ./examples/guarded "Where is order 17?"
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/jetcrew/jetcrew/examples/internal/desk"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

type order struct {
	ID string `json:"id" jsonschema:"description=Number of the order"`
}

// approved lets only the calls of these tools through. It may be called by several goroutines at once.
func approved(tools ...string) executor.Wrapper {
	return func(next executor.Execute) executor.Execute {
		return func(ctx context.Context, call *schema.Call) (schema.Result, *schema.Pending) {
			if !schema.MatchesTool(tools, executor.QueueLocal, call.Tool) {
				r, _ := schema.Decision{Action: schema.ActionDeny, Text: call.Tool + " was not approved"}.Outcome(call)
				return r, nil
			}
			return next(ctx, call)
		}
	}
}

// audit writes down what happened.
func audit(next executor.Execute) executor.Execute {
	return func(ctx context.Context, call *schema.Call) (schema.Result, *schema.Pending) {
		r, pending := next(ctx, call)
		log.Printf("audit: %s %s ok=%t", call.Tool, call.Args, r.OK)
		return r, pending
	}
}

func main() {
	ctx := context.Background()
	tools, err := executor.Wiring{
		Tools: []executor.Tool{
			executor.Func("order_status", "Say where an order is.", func(_ context.Context, o order) (string, error) {
				return fmt.Sprintf("order %s is on its way", o.ID), nil
			}, executor.Idempotent()),
			executor.Func("refund", "Pay the price of an order back.", func(_ context.Context, o order) (string, error) {
				return fmt.Sprintf("order %s is paid back", o.ID), nil
			}),
		},
		Wrappers: []executor.Wrapper{audit, approved("order_*")},
	}.Build(ctx)
	check(err)
	answer, err := desk.Ask(ctx, tools, strings.Join(os.Args[1:], " "))
	check(err)
	fmt.Println(answer)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
