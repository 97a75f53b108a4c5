package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

const cancelEvery = time.Second // how often the hint to cancel is repeated

// Dispatch publishes a decided call on queue and returns its one recorded result, whoever wrote it. within bounds
// waiting plus running, from now; 0 is the call's own timeout, or 300 s. When ctx ends the call is cancelled and still
// settles: the result then is Cancelled, OutcomeUnknown, or what the worker had reached. A sink of schema.WithProgress
// in ctx hears the call's progress. The error is trouble with the transport; a failed tool is a result.
func (b *Bus) Dispatch(ctx context.Context, call *schema.Call, queue string, within time.Duration) (schema.Result, error) {
	f, err := b.join(call.Run)
	if err != nil {
		return schema.Result{}, err
	}
	defer b.leave(f)
	within = cmp.Or(max(within, 0), time.Duration(call.TimeoutMS)*time.Millisecond, DefaultTimeout)
	o := &owner{
		bus: b, call: call, queue: queue, key: call.ResultKey(queue), refused: make(chan error, 1),
		deadline: time.Now().Add(within), server: b.Now().Add(within), within: within, state: ownerState{runOnce: !call.Idempotent},
	}
	o.slot = f.expect(o.key, func(text string) { schema.Progress(ctx, text) })
	defer f.forget(o.key)
	r, err := o.settle(ctx)
	if err != nil {
		return r, fmt.Errorf("dispatch %s on %s: %w", call, queue, err)
	}
	return r, nil
}

// owner drives one call through the owner's rules.
type owner struct {
	bus      *Bus
	call     *schema.Call
	queue    string
	key      schema.Key
	slot     *openCall
	refused  chan error // buffered 1: what went wrong with the publish
	within   time.Duration
	deadline time.Time // local clock
	server   time.Time // the same on the server's, for the header
	stopped  time.Time // when ctx ended; zero: it has not
	state    ownerState
	result   schema.Result
}

func (o *owner) settle(ctx context.Context) (schema.Result, error) {
	ev, err := o.publish(ctx)
	for err == nil {
		switch o.state.on(ev) {
		case doReturn:
			return o.result, nil
		case doClaim:
			ev, err = o.write(true)
		case doGiveUp:
			ev, err = o.write(false)
		case doCancel:
			o.bus.sendCancel(o.call, o.ended())
			ev, err = o.wait(ctx)
		default:
			ev, err = o.wait(ctx)
		}
	}
	return schema.Result{}, err
}

// publish sends the call to the work stream. Nobody waits for the stream to say yes; a no comes as an event.
func (o *owner) publish(ctx context.Context) (ownerEvent, error) {
	if ctx.Err() != nil {
		return evUnsent, nil
	}
	m, err := o.message(ctx)
	if err != nil {
		return 0, err
	}
	ctx, span := tracing.StartPublish(ctx, tracing.Message{
		Template: o.bus.workTemplate, Subject: m.Subject, Run: o.call.Run, Queue: o.queue,
		Turn: o.call.Turn, Index: o.call.Index, Size: len(m.Data),
	})
	defer span.End()
	tracing.Inject(ctx, m.Header)
	if len(m.Data) > schema.MaxInline {
		return evTooLarge, nil
	}
	err = o.bus.publishAsync(m, func(_ uint64, err error) {
		if err != nil {
			o.refused <- err
		}
	})
	if err != nil {
		return o.publishAgain(ctx, err)
	}
	return evPublished, nil
}

// publishAgain takes what went wrong with the last attempt. Silence is answered by another copy, which the facts make
// harmless; a refusal is the call's outcome.
func (o *owner) publishAgain(ctx context.Context, err error) (ownerEvent, error) {
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
		if ev := o.glance(ctx); ev != evPublished {
			return ev, nil
		}
		_ = backoff(ctx, attempt) // an ended ctx is seen by the next glance
		var m *nats.Msg
		if m, err = o.message(ctx); err != nil {
			return 0, err
		}
		tracing.Inject(ctx, m.Header)
		_, err = o.bus.publish(m)
	}
}

// glance tells what has happened to a call that is not known to be published; evPublished: nothing.
func (o *owner) glance(ctx context.Context) ownerEvent {
	select {
	case data := <-o.slot.result:
		o.take(data)
		return evSettled
	default:
	}
	switch {
	case ctx.Err() != nil:
		o.stopped = cmp.Or(o.stopped, time.Now())
		return evStop
	case time.Now().After(o.deadline):
		return evDeadline
	}
	return evPublished
}

func (o *owner) message(ctx context.Context) (*nats.Msg, error) {
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
func (o *owner) wait(ctx context.Context) (ownerEvent, error) {
	at, ev := o.next()
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	stop, refused := ctx.Done(), o.refused
	if o.state.phase != phaseWaiting {
		stop, refused = nil, nil
	}
	select {
	case data := <-o.slot.result:
		o.take(data)
		return evSettled, nil
	case err := <-refused:
		return o.publishAgain(ctx, err)
	case <-stop:
		o.stopped = time.Now()
		return evStop, nil
	case <-t.C:
		return ev, nil
	case <-o.bus.life.Done():
		return 0, nats.ErrConnectionClosed
	}
}

// next returns when something is due and what.
func (o *owner) next() (time.Time, ownerEvent) {
	if o.state.phase == phaseWaiting {
		return o.deadline, evDeadline
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

// take reads a recorded result. A result that cannot be read, or that names another call, is still this call's one
// result: nothing else can be recorded any more.
func (o *owner) take(data []byte) {
	r, err := schema.DecodeResult(data)
	switch {
	case err != nil:
		o.result = o.call.Failf(schema.ToolFailed, "the recorded result is unreadable: %v", err)
	case r.Run != o.call.Run || r.Turn != o.call.Turn || r.Index != o.call.Index:
		o.result = o.call.Fail(schema.ToolFailed, "the recorded result names another call")
	default:
		o.result = *r
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
		guard = o.bus.names.fact(o.call.Run, schema.BeginKey(o.call.Turn, o.call.Index, o.queue))
	}
	_, err = o.bus.record(ctx, o.bus.names.fact(o.call.Run, o.key), data, guard)
	switch {
	case err == nil:
		o.result = r
		return evSettled, nil
	case errors.Is(err, schema.ErrGuarded):
		return evGuarded, nil
	case errors.Is(err, schema.ErrExists):
		return o.read(ctx)
	}
	return 0, err
}

func (o *owner) read(ctx context.Context) (ownerEvent, error) {
	m, err := o.bus.lookFact(ctx, o.call.Run, o.key)
	if err != nil {
		return 0, err
	}
	if m == nil {
		return 0, fmt.Errorf("result %s was there and is gone", o.key)
	}
	o.take(m.Data)
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
		return fmt.Sprintf("the call is larger than %d KiB", schema.MaxInline>>10)
	default:
		return "the call began, and its worker did not say how it ended; it may or may not have taken effect, do not repeat it blindly"
	}
}
