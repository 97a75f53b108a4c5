// Package executor runs one tool call: it finds the tool, repeats the structural validation, and runs the tool's Go
// function under a guard that turns a panic, a runtime.Goexit, a deadline and a handler that never returns into a
// result like any other.
//
// It owns the registry of one queue (Set), the shape of everything that runs calls (Execute) and of everything that
// stands around it (Wrapper). It refuses to own the network: where a call comes from and where its result goes is
// its caller's business.
//
//	type order struct {
//		ID string `json:"id" jsonschema:"description=Number of the order"`
//	}
//	tool := executor.Func("order_status", "Tells where an order is.",
//		func(ctx context.Context, in order) (string, error) { return lookUp(ctx, in.ID) },
//		executor.Idempotent(), executor.Timeout(5*time.Second))
//	set, err := executor.NewSet("orders", tool)
//	result, pending := set.Execute(ctx, call)
package executor
