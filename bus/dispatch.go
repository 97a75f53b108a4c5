package bus

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/trace"

	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

// Dispatch is Start of one call for who waits: it returns the call's one recorded result.
func (b *Bus) Dispatch(ctx context.Context, call *schema.Call, queue string, within time.Duration) (schema.Result, error) {
	type outcome struct {
		result schema.Result
		err    error
	}
	got := make(chan outcome, 1)
	b.Start(schema.Dispatch{Ctx: ctx, Call: call, Queue: queue, Within: within, Done: func(r schema.Result, err error) { got <- outcome{r, err} }})
	o := <-got
	return o.result, o.err
}

// Start publishes decided calls of one run, in their order, and returns; each one's Done gets its one recorded result,
// whoever wrote it, or trouble with the transport. When its context ends a call is cancelled and still settles: the
// result then is Cancelled, OutcomeUnknown, or what the worker had reached. All are encoded before the first is
// published, so that they leave together: calls that trickle cost each process and the server a wake-up of its own.
func (b *Bus) Start(calls ...schema.Dispatch) {
	owners := make([]*owner, 0, len(calls))
	for i := range calls {
		if o := b.prepare(&calls[i]); o != nil {
			owners = append(owners, o)
		}
	}
	for _, o := range owners {
		o.publish()
	}
}

// longest is how long a call may wait and run at most: the server takes no TTL that a time.Duration does not hold.
const longest = 100 * 365 * 24 * time.Hour

// boundOf is the bound on waiting plus running: the caller's, or the tool's own.
func boundOf(d *schema.Dispatch) time.Duration {
	own := min(max(d.Call.TimeoutMS, 0), longest.Milliseconds())
	return min(cmp.Or(max(d.Within, 0), time.Duration(own)*time.Millisecond, DefaultTimeout), longest)
}

// prepare has the result of a call awaited. It returns nil when there is nothing to publish.
func (b *Bus) prepare(d *schema.Dispatch) *owner {
	f, err := b.join(d.Call.Run)
	if err != nil {
		d.Done(schema.Result{}, err)
		return nil
	}
	within := boundOf(d)
	o := &owner{
		bus: b, feed: f, ctx: d.Ctx, call: d.Call, queue: d.Queue, key: d.Call.ResultKey(d.Queue), within: within, done: d.Done, leave: d.Leave, placed: d.Placed,
		result: make(chan []byte, 1), refused: make(chan error, 1),
		deadline: time.Now().Add(within), server: b.Now().Add(within), state: ownerState{runOnce: !d.Call.Idempotent || d.Queue == schema.QueueAgents, child: d.Queue == schema.QueueAgents},
	}
	f.expect(o)
	if o.state.child {
		b.Catalog() // follows from now on who serves which agent
	}
	switch {
	case d.Ctx.Err() != nil:
		o.rush(evUnsent)
		return nil
	case d.Within < 0:
		o.rush(evDeadline)
		return nil
	}
	o.msg, err = o.message()
	switch {
	case err != nil:
		o.end(err)
		return nil
	case len(o.msg.Data) > schema.MaxInline:
		o.store()
		return nil
	}
	o.watch()
	return o
}

// owner drives one call through the owner's rules. The usual way of a call, from the publish to a result that is heard,
// takes no goroutine; whatever else happens to it hands it to pursue, once.
type owner struct {
	settled  bool            // guarded by feed.mu: a result was heard
	ctx      context.Context // the caller's: its end stops the call
	bus      *Bus
	feed     *feed
	call     *schema.Call
	queue    string
	key      schema.Key
	within   time.Duration
	done     func(schema.Result, error)
	leave    <-chan struct{}
	placed   func(index int, seq uint64, deadline time.Time)
	msg      *nats.Msg // until it is published
	deadline time.Time // local clock
	server   time.Time // the same on the server's, for the header

	mu      sync.Mutex
	taken   bool        // somebody drives the call to its end
	timer   *time.Timer // of the deadline
	forsake func() bool // stops waiting for the end of ctx

	// Of who drives it.
	result  chan []byte // buffered 1: what was heard meanwhile
	refused chan error  // buffered 1: what went wrong with the publish
	stopped time.Time   // when ctx ended; zero: it has not
	looked  time.Time   // when somebody who serves the agent was looked for last
	began   bool        // as a refused claim has said
	state   ownerState
	outcome schema.Result
}

// watch has the call pursued at its deadline, an agent's when it is time to see whether anybody serves it, and at the end
// of ctx.
func (o *owner) watch() {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := o.deadline
	if look := o.lookNext(); look.Before(first) {
		first = look
	}
	o.timer = time.AfterFunc(time.Until(first), o.hurry)
	o.forsake = context.AfterFunc(o.ctx, o.hurry)
}

// heard takes the call's result as it is stored.
func (o *owner) heard(data []byte) {
	if !o.claim() {
		o.result <- data
		return
	}
	o.read(data)
	o.end(nil)
}

// refuse takes what went wrong with the publish.
func (o *owner) refuse(err error) {
	o.refused <- err
	o.hurry()
}

// hurry has a published call pursued.
func (o *owner) hurry() { o.rush(evPublished) }

// rush has the call pursued from ev on, if nobody does yet.
func (o *owner) rush(ev ownerEvent) {
	if o.claim() {
		go o.pursue(ev, nil)
	}
}

// claim tells whether the caller is the one that drives the call from now on.
func (o *owner) claim() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.taken {
		return false
	}
	o.taken = true
	if o.timer != nil {
		o.timer.Stop()
		o.forsake()
	}
	return true
}

// end hands the outcome to whoever started the call.
func (o *owner) end(err error) {
	o.feed.forget(o.key)
	o.bus.leave(o.feed)
	if err != nil {
		o.done(schema.Result{}, fmt.Errorf("dispatch %s on %s: %w", o.call, o.queue, err))
		return
	}
	o.done(o.outcome, nil)
}

// publish sends the call to the work stream. Nobody waits for the stream to say yes; a no has the call pursued.
func (o *owner) publish() {
	m := o.msg
	o.msg = nil
	defer o.span(m).End()
	err := o.bus.publishAsync(m, func(seq uint64, err error) {
		if err != nil {
			o.refuse(err)
			return
		}
		o.place(seq)
	})
	if err != nil {
		o.refuse(err)
	}
	if o.leave != nil || o.bus.life.Err() != nil { // whoever ends what waits may have looked before
		o.hurry()
	}
}

// span starts the span of a publish and puts it into the message.
func (o *owner) span(m *nats.Msg) trace.Span {
	ctx, span := tracing.StartPublish(o.ctx, tracing.Message{
		Template: o.bus.workTemplate, Subject: m.Subject, Run: o.call.Run, Queue: o.queue,
		Turn: o.call.Turn, Index: o.call.Index, Size: len(m.Data),
	})
	tracing.Inject(ctx, m.Header)
	return span
}

func (o *owner) message() (*nats.Msg, error) {
	data, err := schema.Encode(o.call)
	if err != nil {
		return nil, err
	}
	h := nats.Header{HeaderDeadline: {strconv.FormatInt(o.server.UnixMilli(), 10)}}
	if o.queue != schema.QueueAgents {
		// A call of the queue agents outlives its deadline on purpose: its TTL would remove the run's own message.
		h[HeaderTTL] = []string{strconv.FormatInt(int64((o.within+TTLMargin)/time.Second)+1, 10) + "s"}
	}
	return &nats.Msg{Subject: o.bus.names.workSubject(o.queue), Header: h, Data: data}, nil
}

// read takes a recorded result. A result that cannot be read, or that names another call, is still this call's one
// result: nothing else can be recorded any more.
func (o *owner) read(data []byte) {
	r, err := schema.DecodeResult(data)
	switch {
	case err != nil:
		o.outcome = o.call.Failf(schema.ToolFailed, "the recorded result is unreadable: %v", err)
	case r.Run != o.call.Run || r.Turn != o.call.Turn || r.Index != o.call.Index:
		o.outcome = o.call.Fail(schema.ToolFailed, "the recorded result names another call")
	default:
		o.outcome = *r
	}
}
