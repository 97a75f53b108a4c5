package schema

import (
	"context"
	"errors"
	"time"
)

// ErrLeft is what Done of a Dispatch gets after Leave was closed.
var ErrLeft = errors.New("the call is left to go on by itself")

// Dispatch is a decided call on its way to a queue.
type Dispatch struct {
	Ctx    context.Context // its end cancels the call, which still settles; a sink of WithProgress in it hears the call
	Call   *Call
	Queue  string
	Within time.Duration // bounds waiting plus running, from the publish; 0: the call's own timeout, or 300 s; less: it has passed, and the call settles without a start
	// Done gets the call's one recorded result, once, perhaps before the call that starts it returns; it must not block.
	// The error says that the transport is gone: a call that fails is a result.
	Done func(Result, error)
	// Leave, if not nil, is closed when nobody waits for the call here any more, which goes on by itself: Done gets ErrLeft.
	Leave <-chan struct{}
	// Placed, if not nil, hears that the call goes on without this process: it is stored under seq in the work stream, to
	// settle by deadline, or, seq 0, its child run has been told to stop. It must not block.
	Placed func(index int, seq uint64, deadline time.Time)
}
