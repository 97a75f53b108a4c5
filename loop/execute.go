package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/panics"
	"go.opentelemetry.io/otel/trace"

	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

// arrival is the outcome of call i: a result, or the transport's error.
type arrival struct {
	i      int
	result schema.Result
	err    error
}

// execute settles every call of a recorded turn and delivers the results in call order. It returns only when nothing
// of the turn is under way any more. An error is trouble with the transport: calls may be open.
//
// Workers take slots in call order and put what comes back into a channel; this goroutine alone writes slots, memory
// and events.
func (x *exchange) execute(t *schema.Turn) error {
	if len(t.Calls) == 0 {
		return nil
	}
	o := newOrder(x, t)
	slots := make(chan int, len(t.Calls))
	arrivals := make(chan arrival, len(t.Calls))
	for i := range t.Calls {
		slots <- i
	}
	close(slots)
	var wg conc.WaitGroup
	for range x.width(t) {
		wg.Go(func() {
			for i := range slots {
				arrivals <- x.settle(o, i)
			}
		})
	}
	for range t.Calls {
		o.add(<-arrivals)
	}
	wg.Wait()
	return o.err
}

// width is how many calls may be under way at once: one, unless parallel calls are wanted and more than one is valid.
func (x *exchange) width(t *schema.Turn) int {
	valid := 0
	for i := range t.Calls {
		if t.Calls[i].Decision.Action == schema.ActionAllow {
			valid++
		}
	}
	p := x.agent.cfg.Agent.Parallel
	switch {
	case !p.Calls || valid < 2:
		return 1
	case p.Max > 0:
		return min(p.Max, len(t.Calls))
	default:
		return len(t.Calls)
	}
}

// settle gets the one result of call i. A panic below is an arrival too, or the turn would wait for ever.
func (x *exchange) settle(o *order, i int) (a arrival) {
	a.i = i
	var catch panics.Catcher
	ctx, span := x.startTool(o.turn, i)
	catch.Try(func() { a.result, a.err = x.outcome(ctx, o, i) })
	if p := catch.Recovered(); p != nil {
		a.err = fmt.Errorf("dispatch panicked: %w", p.AsError())
	}
	if e := a.result.Error; a.err == nil && e != nil {
		tracing.EndFailed(span, string(e.Type), e.Message)
	}
	tracing.End(span, a.err) // a span that has ended stays as it is
	return a
}

// startTool starts the span of call i. Its context ends when the run is stopped.
func (x *exchange) startTool(t *schema.Turn, i int) (context.Context, trace.Span) {
	c := &t.Calls[i]
	return tracing.StartTool(trace.ContextWithSpan(x.stop.calls, x.span), tracing.Tool{
		Name: c.Tool, Unregistered: c.Decision.Type == schema.UnknownTool, Label: c.Label, Run: x.id, Queue: c.Queue, Turn: t.N, Index: i,
	})
}

// outcome is the turn's own decision, or what the dispatch brings. A call that may not start any more is settled here,
// guarded on its begin.
func (x *exchange) outcome(ctx context.Context, o *order, i int) (schema.Result, error) {
	c, call := &o.turn.Calls[i], x.call(o.turn, i)
	if x.resuming {
		return x.again(ctx, c, call)
	}
	if r, decided := c.Decision.Outcome(call); decided {
		return x.claim(call, c.Queue, r, schema.Key{})
	}
	within, ok := x.within(c)
	switch {
	case ctx.Err() != nil:
		return x.claim(call, c.Queue, call.Fail(schema.Cancelled, "not started: the run was stopped"), schema.BeginKey(call.Turn, i, c.Queue))
	case !ok:
		return x.claim(call, c.Queue, call.Fail(schema.Timeout, "not started: the run's time limit is reached"), schema.BeginKey(call.Turn, i, c.Queue))
	}
	if x.events.sink != nil {
		ctx = schema.WithProgress(ctx, func(text string) {
			o.gates[i].emit(Event{Type: EventToolProgress, Exchange: x.k, Turn: call.Turn, Call: &o.infos[i], Text: schema.CleanText(text)})
		})
	}
	return x.agent.cfg.Dispatcher.Dispatch(ctx, call, c.Queue, within)
}

// within is the bound on waiting plus running, from now: the call's own, and what is left of the wall clock. 0 is
// none; ok is false when no time is left.
func (x *exchange) within(c *schema.TurnCall) (d time.Duration, ok bool) {
	d = time.Duration(c.WithinMS) * time.Millisecond
	if x.until.IsZero() {
		return d, true
	}
	left := time.Until(x.until)
	if d == 0 || left < d {
		d = left
	}
	return d, left > 0
}

func (x *exchange) call(t *schema.Turn, i int) *schema.Call {
	c := &t.Calls[i]
	return &schema.Call{
		Run: x.id, Turn: t.N, Index: i, Label: c.Label, Tool: c.Tool, Source: c.Source, Args: c.Args, Bound: c.Bound,
		Agent: x.agent.cfg.Agent.ID, Principal: x.agent.cfg.Principal, Effect: c.Effect, Idempotent: c.Idempotent,
		TimeoutMS: c.TimeoutMS, Digest: c.Digest,
	}
}

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
	return r, fmt.Errorf("call %s has begun elsewhere: %w", call, ErrFenced)
}
