package schema

import (
	"context"
	"time"
)

// Dispatch is a decided call on its way to a queue.
type Dispatch struct {
	Ctx    context.Context // its end cancels the call, which still settles; a sink of WithProgress in it hears the call
	Call   *Call
	Queue  string
	Within time.Duration // bounds waiting plus running, from the publish; 0: the call's own timeout, or 300 s
	// Done gets the call's one recorded result, once, perhaps before the call that starts it returns; it must not block.
	// The error says that the transport is gone: a call that fails is a result.
	Done func(Result, error)
}
