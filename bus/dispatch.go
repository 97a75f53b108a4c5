package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/trace"

	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

const (
	cancelEvery = time.Second     // how often the hint to cancel is repeated
	stopEvery   = 5 * time.Second // how often it is made sure that a child's stop stands
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

// prepare has the result of a call awaited. It returns nil when there is nothing to publish.
func (b *Bus) prepare(d *schema.Dispatch) *owner {
	f, err := b.join(d.Call.Run)
	if err != nil {
		d.Done(schema.Result{}, err)
		return nil
	}
	within := cmp.Or(max(d.Within, 0), time.Duration(d.Call.TimeoutMS)*time.Millisecond, DefaultTimeout)
	o := &owner{
		bus: b, feed: f, ctx: d.Ctx, call: d.Call, queue: d.Queue, key: d.Call.ResultKey(d.Queue), within: within, done: d.Done, leave: d.Leave, placed: d.Placed,
		result: make(chan []byte, 1), refused: make(chan error, 1),
		deadline: time.Now().Add(within), server: b.Now().Add(within), state: ownerState{runOnce: !d.Call.Idempotent || d.Queue == schema.QueueAgents, child: d.Queue == schema.QueueAgents},
	}
	f.expect(o)
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
	settled  bool            // guarded by feed.mu: a result was heard; it stays with the feed, so that a second copy is no stray
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
	state   ownerState
	outcome schema.Result
}

// watch has the call pursued at its deadline and at the end of ctx.
func (o *owner) watch() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer = time.AfterFunc(time.Until(o.deadline), o.hurry)
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

// pursue takes the call to its end, from ev on, unless err has ended it.
func (o *owner) pursue(ev ownerEvent, err error) {
	for err == nil {
		switch o.state.on(ev) {
		case doReturn:
			o.end(nil)
			return
		case doClaim:
			ev, err = o.write(true)
		case doGiveUp:
			ev, err = o.write(false)
		case doCancel:
			o.bus.sendCancel(o.call, o.ended())
			ev, err = o.wait()
		case doStopChild:
			o.stopChild()
			ev, err = o.wait()
		default:
			ev, err = o.wait()
		}
	}
	o.end(err)
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

// publishAgain takes what went wrong with the last attempt. Silence is answered by another copy, which the facts make
// harmless; a refusal is the call's outcome.
func (o *owner) publishAgain(err error) (ownerEvent, error) {
	for attempt := 1; ; attempt++ {
		switch {
		case err == nil:
			return evPublished, nil
		case errors.Is(err, errTooLarge):
			return evTooLarge, nil
		case apiCode(err) != 0:
			o.bus.log.Warn("work stream refused a call", "call", o.call.String(), "queue", o.queue, "error", err)
			return evFull, nil
		case hopeless(err):
			return 0, err
		}
		if ev := o.glance(); ev != evPublished {
			return ev, nil
		}
		_ = backoff(o.ctx, attempt) // an ended ctx is seen by the next glance
		var m *nats.Msg
		if m, err = o.refer(); err == nil {
			tracing.Inject(o.ctx, m.Header)
			var seq uint64
			if seq, err = o.bus.publish(m); err == nil {
				o.place(seq)
			}
		}
	}
}

// glance tells what has happened to a call that is not known to be published; evPublished: nothing.
func (o *owner) glance() ownerEvent {
	select {
	case data := <-o.result:
		o.read(data)
		return evSettled
	default:
	}
	switch {
	case o.ctx.Err() != nil:
		o.stopped = cmp.Or(o.stopped, time.Now())
		return evStop
	case time.Now().After(o.deadline):
		return evDeadline
	}
	return evPublished
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

// wait ends at the next thing that happens to the call.
func (o *owner) wait() (ownerEvent, error) {
	at, ev := o.next()
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	stop, refused := o.ctx.Done(), o.refused
	if o.state.phase != phaseWaiting {
		stop, refused = nil, nil
	}
	select {
	case data := <-o.result:
		o.read(data)
		return evSettled, nil
	case err := <-refused:
		return o.publishAgain(err)
	case <-stop:
		o.stopped = time.Now()
		return evStop, nil
	case <-t.C:
		return ev, nil
	case <-o.leave:
		return 0, schema.ErrLeft
	case <-o.bus.life.Done():
		return 0, nats.ErrConnectionClosed
	}
}

// next returns when something is due and what.
func (o *owner) next() (time.Time, ownerEvent) {
	if o.state.phase == phaseWaiting {
		return o.deadline, evDeadline
	}
	if o.state.child { // its result comes, however late: its run is durable
		return time.Now().Add(stopEvery), evRepeat
	}
	end := o.deadline.Add(o.bus.cfg.Grace)
	if o.state.fail == schema.Cancelled {
		end = o.stopped.Add(o.bus.cfg.Grace)
	}
	if again := time.Now().Add(cancelEvery); again.Before(end) {
		return again, evRepeat
	}
	return end, evGrace
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

// write records the owner's own result. notStarted guards it on the call's begin, which the queue agents keep in the
// child's open fact instead.
func (o *owner) write(notStarted bool) (ownerEvent, error) {
	ctx := context.Background() // a cancelled caller still gets its call settled; record has its own bound
	why := o.why()              // may sharpen the type
	r := o.call.Fail(o.state.fail, why)
	r.Worker, r.EndedMS = o.bus.cfg.Instance, o.bus.Now().UnixMilli()
	data, err := schema.Encode(&r)
	if err != nil {
		return 0, err
	}
	guard := ""
	if notStarted && o.state.runOnce {
		start := o.call.StartKey(o.queue)
		guard = o.bus.names.fact(cmp.Or(start.Run, o.call.Run), start)
	}
	_, err = o.bus.record(ctx, o.bus.names.fact(o.call.Run, o.key), data, guard)
	switch {
	case err == nil:
		o.outcome = r
		return evSettled, nil
	case errors.Is(err, schema.ErrGuarded):
		return evGuarded, nil
	case errors.Is(err, schema.ErrExists):
		return o.look(ctx)
	}
	return 0, err
}

func (o *owner) look(ctx context.Context) (ownerEvent, error) {
	m, err := o.bus.lookFact(ctx, o.call.Run, o.key)
	if err != nil {
		return 0, err
	}
	if m == nil {
		return 0, fmt.Errorf("result %s was there and is gone", o.key)
	}
	o.read(m.Data)
	return evSettled, nil
}

// ended says for the workers why the call is cancelled.
func (o *owner) ended() string {
	if o.stopped.IsZero() {
		return "its deadline has passed"
	}
	return "the caller does not want it any more"
}

// why says for the model what the owner's own result means.
func (o *owner) why() string {
	switch o.state.fail {
	case schema.Timeout:
		missed := "not started"
		if !o.state.runOnce {
			missed = "no result" // nobody says whether it started
		}
		if !o.bus.served(o.queue, o.call.Tool) {
			o.state.fail = schema.NoWorker
			return fmt.Sprintf("no worker of queue %q has the tool; %s within %v", o.queue, missed, o.within)
		}
		return fmt.Sprintf("%s within %v", missed, o.within)
	case schema.Cancelled:
		return "cancelled by the caller"
	case schema.QueueFull:
		return fmt.Sprintf("queue %q takes no further calls now; try again later", o.queue)
	case schema.TooLarge:
		return fmt.Sprintf("the call is larger than %d MiB", schema.MaxPayload>>20)
	default:
		return "the call began, and its worker did not say how it ended; it may or may not have taken effect, do not repeat it blindly"
	}
}
