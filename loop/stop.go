package loop

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/sourcegraph/conc"

	"github.com/jetcrew/jetcrew/schema"
)

// stopper turns the end of the caller's context, and what is heard of the run, into the end of an exchange's work.
// A stop is durable before the first call is cancelled: first the slot, then the context.
//
//	caller's ctx ends, only people are waited for ───────► model ends; another process can go on
//	caller's ctx ends ── write stop slot ──┐
//	stop slot heard ───────────────────────┴─► calls end ─► model ends
//	newer owner or close heard ──────────────────────────► model ends; running calls are the new owner's
//	handed back ──────────────────────────────────────────► model ends
type stopper struct {
	run    *Run
	idle   *atomic.Bool // the exchange waits for nothing but people
	calls  context.Context
	model  context.Context
	done   chan struct{}
	wg     conc.WaitGroup
	cancel context.CancelCauseFunc // ends calls
	lose   context.CancelCauseFunc // ends model

	why error // read after wg.Wait
}

func (r *Run) watchStop(ctx context.Context, idle *atomic.Bool) *stopper {
	s := &stopper{run: r, idle: idle, done: make(chan struct{})}
	s.calls, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.model, s.lose = context.WithCancelCause(s.calls)
	select {
	case <-r.stopped: // before the exchange: it must not ask the model even once
		s.halt(ErrStopped)
	default:
		s.wg.Go(func() { s.watch(ctx) })
	}
	return s
}

func (s *stopper) watch(ctx context.Context) {
	lost, yield := s.run.lost, s.run.yield
	for {
		select {
		case <-s.done:
			return
		case <-lost:
			lost = nil
			s.lose(s.run.lostTo())
		case <-yield:
			yield = nil
			s.lose(ErrYielded) // the model only: calls that run settle
		case <-s.run.stopped:
			s.halt(ErrStopped)
			return
		case <-ctx.Done():
			if s.idle.Load() {
				s.lose(ErrParked)
				return
			}
			s.halt(s.run.writeStop(ctx))
			return
		}
	}
}

func (s *stopper) halt(why error) {
	s.why = why
	s.cancel(why)
}

// end waits for the stopper and returns why the exchange was stopped, nil if it was not.
func (s *stopper) end() error {
	close(s.done)
	s.wg.Wait()
	s.lose(nil)
	s.cancel(nil)
	return s.why
}

// writeStop writes a stop slot because the caller's context ended. The error it returns is what the run ends with:
// it wraps ErrStopped when the slot, or another stop, stands.
func (r *Run) writeStop(ctx context.Context) error {
	cause := context.Cause(ctx)
	slot := &schema.Ctl{Act: schema.CtlStop, Instance: r.agent.cfg.Instance, Why: cause.Error(), AtMS: nowMS()}
	err := r.writeWithin(ctx, stopBound, schema.CtlKey(r.own+1), slot, schema.Key{})
	if errors.Is(err, schema.ErrExists) {
		if err = r.refused(ctx); errors.Is(err, ErrStopped) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("%w: stop: %w", cause, err)
	}
	return fmt.Errorf("%w: %w", ErrStopped, cause)
}

// lostTo says what ended the ownership. Who wakes up late may hear of the newer owner and of its close at once: the run
// was taken, and its end is not this owner's.
func (r *Run) lostTo() error {
	if r.taken() == nil && r.state.Closed() != nil {
		return ErrClosed
	}
	return ErrFenced
}
