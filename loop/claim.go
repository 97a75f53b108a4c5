package loop

import (
	"context"
	"errors"
	"fmt"

	"github.com/jetcrew/jetcrew/schema"
)

// settleRefused writes the result of a call that is not to run. One that has begun all the same, which is an earlier owner's
// doing or a stranger's, is ended as if the run were stopped.
func (s *starter) settleRefused(ctx context.Context, call *schema.Call, queue string, r schema.Result) (schema.Result, error) {
	got, err := s.claim(call, queue, r, call.StartKey(queue))
	if !errors.Is(err, errBegun) {
		return got, err
	}
	settled := make(chan arrival, 1)
	s.publish(schema.Dispatch{Ctx: ended(ctx), Call: call, Queue: queue, Done: func(r schema.Result, err error) {
		select {
		case settled <- arrival{result: r, err: err}:
		default: // of a dispatcher that panics
		}
	}})
	a := <-settled
	return a.result, a.err
}

// errBegun refuses the claim that a call was not started.
var errBegun = errors.New("it has begun elsewhere")

// claim writes the owner's result of a call that did not run. Refused, somebody else's result stands.
func (x *exchange) claim(call *schema.Call, queue string, r schema.Result, unless schema.Key) (schema.Result, error) {
	r.Worker = x.agent.cfg.Instance
	err := x.write(x.ctx, call.ResultKey(queue), &r, unless)
	if !errors.Is(err, schema.ErrExists) && !errors.Is(err, schema.ErrGuarded) {
		return r, err
	}
	if err := x.refresh(x.ctx); err != nil {
		return r, err
	}
	if got := x.state.Result(call.Turn, call.Index); got != nil {
		return *got, nil
	}
	return r, fmt.Errorf("call %s: %w: %w", call, errBegun, ErrFenced)
}
