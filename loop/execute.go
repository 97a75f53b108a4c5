package loop

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
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
// This goroutine alone starts calls, in call order, and writes slots, memory and events; what comes back arrives on a
// channel.
func (x *exchange) execute(t *schema.Turn) error {
	if len(t.Calls) == 0 {
		return nil
	}
	s := &starter{exchange: x, order: newOrder(x, t), arrivals: make(chan arrival, len(t.Calls)), arrived: make([]atomic.Bool, len(t.Calls)), width: x.width(t)}
	defer s.claims.Wait()
	var err error
	if s.nursery, err = x.newNursery(t); err != nil {
		return err
	}
	if s.questions, err = newQuestions(x, t); err != nil {
		return err
	}
	defer s.questions.end()
	s.begin()
	for open := len(t.Calls); open > 0; {
		if s.nursery.idle() {
			return s.park()
		}
		select {
		case a := <-s.arrivals:
			s.nursery.arrived(a.i)
			s.order.add(a)
			s.running--
			s.start()
			open--
		case c := <-s.nursery.heard():
			s.nursery.placed[c.Index] = c
		case <-s.questions.news():
			s.reconsider()
		case <-s.questions.expired():
			s.reconsider()
		case <-s.questions.stops():
			s.reconsider()
		case <-s.questions.ticks():
			if err := s.questions.look(); err == nil { // else the next tick looks again
				s.reconsider()
			}
		case <-s.gone():
			return context.Cause(x.stop.model)
		}
	}
	return s.order.err
}

// begin starts what may start, and asks about what may not.
func (s *starter) begin() {
	for i := range s.order.turn.Calls {
		if s.questions.concern(i) {
			s.consider(i)
		} else {
			s.ready = append(s.ready, i)
		}
	}
	s.start()
}

// park ends the turn here, though calls are open, when none of them needs this process.
func (s *starter) park() error {
	err := cmp.Or(s.order.err, s.trouble)
	if err == nil {
		err = s.nursery.park()
	}
	close(s.nursery.leave)
	for i := range s.nursery.open { // the dispatches end, so that none is left that would stop a child
		if s.nursery.started[i] {
			<-s.arrivals
		}
	}
	return err
}

// width is how many calls may be under way at once: one, unless parallel calls are wanted and more than one is valid.
func (x *exchange) width(t *schema.Turn) int {
	valid := 0
	for i := range t.Calls {
		if mayRun(&t.Calls[i]) {
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

// starter starts the calls of a turn.
type starter struct {
	*exchange
	order     *order
	width     int               // calls under way at once
	running   int               // calls under way
	ready     []int             // calls to be started
	batch     []schema.Dispatch // what is to leave together
	arrivals  chan arrival      // buffered for every call
	arrived   []atomic.Bool     // of which call one came already: a dispatcher that panics may have begun
	claims    conc.WaitGroup    // results that this owner writes
	nursery   *nursery          // of the calls that go on without this process
	trouble   error             // with a question: it is asked again by whoever goes on
	questions *questions        // about the calls that wait for a person
}

// start has as many calls settled as may be under way.
func (s *starter) start() {
	s.batch = s.batch[:0]
	for s.running < s.width {
		i, ok := s.next()
		if !ok {
			break
		}
		s.running++
		s.prepare(i)
	}
	s.watchWaiting()
	s.questions.tell()
	if len(s.batch) == 0 {
		return
	}
	s.publish(s.batch...)
}

func (s *starter) publish(batch ...schema.Dispatch) {
	var catch panics.Catcher
	catch.Try(func() { s.agent.cfg.Dispatcher.Start(batch...) })
	if p := catch.Recovered(); p != nil { // or the turn would wait for ever
		for _, d := range batch {
			d.Done(schema.Result{}, fmt.Errorf("dispatch panicked: %w", p.AsError()))
		}
	}
}

// arrive returns what takes the first outcome of call i.
func (s *starter) arrive(i int, span trace.Span) func(schema.Result, error) {
	return func(r schema.Result, err error) {
		if s.arrived[i].Swap(true) {
			return
		}
		if err == nil {
			s.handoffSpan(s.order.turn, i, &r, span)
		}
		if err == nil && r.Error != nil {
			tracing.EndFailed(span, string(r.Error.Type), r.Error.Message)
		}
		tracing.End(span, err) // a span that has ended stays as it is
		s.arrivals <- arrival{i, r, err}
	}
}

// startTool starts the span of call i. Its context ends when the run is stopped.
func (x *exchange) startTool(t *schema.Turn, i int) (context.Context, trace.Span) {
	c := &t.Calls[i]
	return tracing.StartTool(trace.ContextWithSpan(x.stop.calls, x.span), tracing.Tool{
		Name: c.Tool, Unregistered: c.Decision.Type == schema.UnknownTool, Label: c.Label, Run: x.id, Queue: c.Queue, Turn: t.N, Index: i,
	})
}

// prepare has call i arrive by the turn's own decision, or puts it among those to dispatch. A call that may not start
// any more is settled here, guarded on its begin.
func (s *starter) prepare(i int) {
	c, call := &s.order.turn.Calls[i], s.final(i)
	ctx, span := s.startTool(s.order.turn, i)
	done := s.arrive(i, span)
	s.handoffStart(s.order.turn, &s.order.infos[i], span)
	claim := func(r schema.Result, unless schema.Key) { // it waits for the stream, which the next calls need not
		s.claims.Go(func() { done(s.claim(call, c.Queue, r, unless)) })
	}
	if r := s.recorded(call); r != nil {
		done(*r, nil)
		return
	}
	if r, decided := c.Decision.Outcome(call); decided {
		claim(r, schema.Key{})
		return
	}
	if f := s.questions.fates[i]; f.refused != nil {
		s.claims.Go(func() { done(s.settleRefused(ctx, call, c.Queue, *f.refused)) })
		return
	}
	var err error
	if call.Previous, err = s.previous(i); err != nil {
		done(schema.Result{}, err)
		return
	}
	stopped := ctx.Err() != nil
	if s.nursery.begin(i, stopped) {
		tracing.End(span, nil)
		return
	}
	within, ok := s.within(s.order.turn, i)
	switch {
	case s.resuming && !ok:
		ctx = ended(ctx) // it may have begun, so the dispatch settles it, without a start
	case s.resuming:
	case stopped:
		claim(call.Fail(schema.Cancelled, "not started: the run was stopped"), call.StartKey(c.Queue))
		return
	case !ok:
		claim(call.Fail(schema.Timeout, "not started: the run's time limit is reached"), call.StartKey(c.Queue))
		return
	}
	if s.events.sink != nil {
		ctx = schema.WithProgress(ctx, func(text string) {
			s.order.gates[i].emit(Event{Type: EventToolProgress, Exchange: s.k, Turn: call.Turn, Call: &s.order.infos[i], Text: schema.CleanText(text)})
		})
	}
	if heard := s.listen(ctx, call); heard != nil {
		settled := done
		done = func(r schema.Result, err error) {
			if err == nil {
				heard(r)
			}
			settled(r, err)
		}
	}
	if isOwn(c.Tool, c.Queue) {
		s.claims.Go(func() { done(s.executeHere(ctx, call, within)) })
		return
	}
	d := schema.Dispatch{Ctx: ctx, Call: call, Queue: c.Queue, Within: within, Done: done}
	s.nursery.attach(i, &d)
	s.batch = append(s.batch, d)
}

// within is the bound on waiting plus running, from now: the call's own, and what is left of the wall clock. 0 is
// none; ok is false when no time is left. Of an agent's call it is its own alone, from the end of the model's answer,
// and less than 0 when it is over.
func (x *exchange) within(t *schema.Turn, i int) (d time.Duration, ok bool) {
	c := &t.Calls[i]
	d = time.Duration(c.WithinMS) * time.Millisecond
	if c.Queue == schema.QueueAgents {
		if x.resuming {
			if d -= time.Since(time.UnixMilli(x.freeSince(t, i))); d == 0 {
				d = -1 // over, and 0 would be no bound
			}
		}
		return d, true
	}
	if x.until.IsZero() {
		return d, true
	}
	left := time.Until(x.until)
	if waits(t) {
		left += x.waited(t)
	}
	if d == 0 || left < d {
		d = left
	}
	return d, left > 0
}

// final is the call as it is published: what a person has approved may differ from the turn.
func (s *starter) final(i int) *schema.Call {
	call := s.call(s.order.turn, i)
	if f := s.questions.fates[i]; f.refused == nil {
		call.Args, call.Digest = cmp.Or(f.args, call.Args), cmp.Or(f.digest, call.Digest)
	}
	return call
}

// freeSince is from when on a call of an agent could go, in Unix milliseconds: from the model's answer, from its verdict or,
// where calls go one after the other, as those of one session do, from the result before it.
func (x *exchange) freeSince(t *schema.Turn, i int) int64 {
	at := t.EndedMS
	if _, k := x.state.Ask(t.N, i); k > 0 {
		if v := x.state.Verdict(t.N, i, k); v != nil {
			at = max(at, min(v.AtMS, nowMS()))
		}
	}
	alone, session := x.width(t) == 1, x.inSession(t, i)
	for j := range i {
		if r := x.state.Result(t.N, j); r != nil && (alone || slices.Contains(session, j)) {
			at = max(at, r.EndedMS)
		}
	}
	return at
}

func (x *exchange) call(t *schema.Turn, i int) *schema.Call {
	c, as := &t.Calls[i], ""
	if c.Target != "" && c.Target != c.Tool {
		as = c.Tool
	}
	return &schema.Call{
		Run: x.id, Turn: t.N, Index: i, Label: c.Label, Tool: cmp.Or(c.Target, c.Tool), As: as, Source: c.Source, Args: c.Args, Bound: c.Bound,
		Agent: x.agent.cfg.Agent.ID, Principal: x.agent.cfg.Principal, Effect: c.Effect, Idempotent: c.Idempotent,
		TimeoutMS: c.TimeoutMS, Digest: c.Digest, Depth: x.open.Depth, Lineage: x.open.Lineage, Budget: c.Budget,
	}
}
