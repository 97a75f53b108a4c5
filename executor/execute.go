package executor

import (
	"context"
	"fmt"

	"github.com/jetcrew/jetcrew/schema"
)

// Execute runs one call and returns its one result, or a non-nil Pending when there is no result yet; the result
// is then zero. It returns when the call is settled or ctx has ended and a grace has passed. An Execute is safe for
// concurrent use; it must not change the call, which it shares with its caller.
type Execute func(ctx context.Context, call *schema.Call) (schema.Result, *schema.Pending)

// Wrapper stands around an Execute: it may look at the call, refuse it with a result of its own, pass a changed copy
// on, or look at the result. It must be safe for concurrent use and call next at most once.
type Wrapper func(next Execute) Execute

// Chain returns e inside the wrappers w; the first of them is the outermost.
func Chain(e Execute, w ...Wrapper) Execute {
	for i := len(w) - 1; i >= 0; i-- {
		e = w[i](e)
	}
	return e
}

type callKey struct{}

// CallOf returns the call that a tool is running, from the context that the tool got; nil outside a tool.
func CallOf(ctx context.Context) *schema.Call {
	call, _ := ctx.Value(callKey{}).(*schema.Call)
	return call
}

// Key returns the idempotency key of the running call, run/turn.index. It is the same for every attempt of one call
// and differs between calls, also between two calls that a model meant to be identical. Empty outside a tool.
func Key(ctx context.Context) string {
	call := CallOf(ctx)
	if call == nil {
		return ""
	}
	return fmt.Sprintf("%s/%d.%d", call.Run, call.Turn, call.Index)
}
