package executor_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

type order struct {
	ID string `json:"id" jsonschema:"minLength=1,description=Number of the order"`
}

// A worker's tools are Go functions in a Set; what serves a queue asks the set for its tools and has it execute calls.
func Example() {
	status := executor.Func("order_status", "Tells where an order is.",
		func(_ context.Context, in order) (string, error) { return "order " + in.ID + " is on its way", nil },
		executor.Idempotent(), executor.Effect(schema.EffectRead), executor.Timeout(5*time.Second))
	set, err := executor.NewSet("orders", status)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, _ := set.Execute(context.Background(), &schema.Call{Run: "r1", Turn: 1, Label: "c1", Tool: "order_status", Args: `{"id":"A7"}`})
	fmt.Println(result.OK, result.Output)
	result, _ = set.Execute(context.Background(), &schema.Call{Run: "r1", Turn: 1, Index: 1, Label: "c2", Tool: "orders", Args: `{}`})
	fmt.Println(result.OK, result.Error.Type)
	// Output:
	// true order A7 is on its way
	// false UnknownTool
}
