package loop

import (
	"context"
	"errors"

	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

// stateStopped is the state of a run that ended without an answer.
const stateStopped = "stopped"

// maxCloses bounds how often the close of a stopped run is tried again because another message came first.
const maxCloses = 100

// Close ends the run: it reads once more what others have done to it, then writes close, provided no message waits for
// an answer (ErrUnanswered). A second Close closes regardless of the messages that the first one knew. It waits for an
// exchange under way. Closing a closed run does nothing.
func (r *Run) Close(ctx context.Context) error {
	if errors.Is(r.ended(), ErrClosed) {
		return nil
	}
	if err := r.acquire(ctx); err != nil {
		if errors.Is(err, ErrClosed) || errors.Is(err, ErrStopped) {
			return nil
		}
		return r.errorf("close", err)
	}
	defer r.release()
	seen := r.state.Says()
	if err := r.catchUp(ctx); err != nil {
		return r.errorf("close", err)
	}
	if k := r.state.Says(); k > r.warned && (k > seen || r.state.Pending()) {
		r.warned = k
		return r.errorf("close", ErrUnanswered)
	}
	err := r.writeClose(ctx, r.lastReason())
	if errors.Is(err, ErrUnanswered) {
		r.warned = r.state.Says()
		return r.errorf("close", err)
	}
	if err != nil {
		r.leave(err)
		return r.errorf("close", err)
	}
	r.leave(ErrClosed)
	return nil
}

// writeClose writes the last fact after a reading that must be complete: no newer owner, no open call.
func (r *Run) writeClose(ctx context.Context, state string) error {
	switch {
	case r.state.Closed() != nil:
		return nil
	case r.taken() != nil:
		return ErrFenced
	}
	if n := r.state.Turns(); len(r.state.OpenCalls(n)) > 0 {
		return errors.New("calls of the last turn are open")
	}
	if err := r.report(ctx); err != nil {
		return err
	}
	used, calls := r.state.Usage(1)
	c := &schema.Close{State: state, Turns: r.state.Turns(), Calls: calls, Usage: used, AtMS: nowMS()}
	err := r.write(ctx, schema.CloseKey(), c, schema.SayKey(r.state.Says()+1))
	switch {
	case errors.Is(err, schema.ErrExists):
		return nil
	case errors.Is(err, schema.ErrGuarded):
		if err := r.refresh(ctx); err != nil {
			return err
		}
		return ErrUnanswered
	}
	return err
}

// closeStopped closes a stopped run, whose calls have settled, whatever was said meanwhile.
func (r *Run) closeStopped(ctx context.Context, state string) error {
	if err := r.refresh(ctx); err != nil {
		return err
	}
	err := r.writeClose(ctx, state)
	for i := 0; errors.Is(err, ErrUnanswered) && i < maxCloses; i++ {
		err = r.writeClose(ctx, state)
	}
	return err
}

// closedAs is the state that a stopped run closes with: that of its last answer where the stop only asks for the end of
// a conversation in which nothing waits.
func (r *Run) closedAs() string {
	a := r.state.Answer(r.state.Answers())
	if a == nil || r.state.Pending() || r.state.Turns() >= r.unanswered() {
		return stateStopped
	}
	for k := 1; k <= r.state.Ctls(); k++ {
		if c := r.state.Ctl(k); c.Act == schema.CtlStop && c.Why != schema.WhyClose {
			return stateStopped
		}
	}
	return string(a.Reason)
}

// lastReason is the state that the run closes with.
func (r *Run) lastReason() string {
	if r.state.Ctls() > r.own {
		return stateStopped
	}
	if a := r.state.Answer(r.state.Answers()); a != nil {
		return string(a.Reason)
	}
	return stateStopped
}

// leave ends the run for this process, once.
func (r *Run) leave(why error) {
	r.endMu.Lock()
	if r.end != nil {
		r.endMu.Unlock()
		return
	}
	r.end = why
	r.endMu.Unlock()
	r.unwatch()
	end := Event{Type: EventRunEnd}
	if c := r.state.Closed(); c != nil {
		end.Reason = schema.Reason(c.State)
	}
	switch {
	case errors.Is(why, ErrClosed):
		why = nil
	case errors.Is(why, ErrParked):
		end.Error, why = why.Error(), nil
	default:
		end.Error = why.Error()
		r.events.emit(Event{Type: EventError, Error: end.Error})
	}
	tracing.End(r.span, why)
	r.events.emit(end)
}

// ended returns why the run is over for this process, nil while it is not.
func (r *Run) ended() error {
	r.endMu.Lock()
	defer r.endMu.Unlock()
	return r.end
}
