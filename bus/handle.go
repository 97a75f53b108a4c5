package bus

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

// delivery is one delivery of a call to this process.
type delivery struct {
	*service
	origin
	msg      *nats.Msg
	call     *schema.Call
	tool     schema.Tool
	received time.Time // local clock
	deadline time.Time // local clock
	entry    *entry
	cancel   context.CancelCauseFunc
	runOnce  bool
	attempts int
	freed    bool                        // it holds no slot any more
	ref      *schema.Blob                // what the message refers to; nil: it holds the call itself
	kept     atomic.Pointer[schema.Blob] // the whole output, when the tool had it stored
}

// read makes a delivery of a message.
func (s *service) read(m *nats.Msg) (*delivery, error) {
	o, err := parseOrigin(m)
	if err != nil {
		return nil, err
	}
	d := &delivery{service: s, origin: o, msg: m, received: time.Now(), attempts: int(o.delivery)}
	if ref, ok := schema.ParseReference(m.Data); ok {
		d.refer(ref)
	} else if d.call, err = schema.DecodeCall(m.Data); err != nil {
		return d, err
	}
	d.deadline = d.serverDeadline().Add(-time.Duration(s.bus.clock.offset.Load()))
	return d, nil
}

// refer makes d the delivery of a call that is still to be fetched.
func (d *delivery) refer(ref schema.Blob) {
	d.ref, d.call = &ref, &schema.Call{Run: ref.Run, Turn: ref.Turn, Index: ref.Index}
}

// serverDeadline reads the deadline on the server's clock. Without a readable header it is the time of storing plus
// the call's timeout.
func (d *delivery) serverDeadline() time.Time {
	if ms, err := strconv.ParseInt(d.msg.Header.Get(HeaderDeadline), 10, 64); err == nil {
		return time.UnixMilli(ms)
	}
	if ms := d.call.TimeoutMS; ms > 0 {
		return d.stored.Add(time.Duration(ms) * time.Millisecond)
	}
	return d.stored.Add(DefaultTimeout)
}

// handle takes a delivery to its end: a recorded result and an acknowledgement, or a way back to the queue. When the
// last word is the stream's, release is called by who hears it.
func (s *service) handle(m *nats.Msg) {
	d, err := s.read(m)
	switch {
	case d == nil:
		s.bus.log.Warn("message is no delivery", "queue", s.worker.Queue, "error", err)
		s.done()
	case err != nil:
		d.bury(err.Error())
		s.done()
	default:
		d.admit()
	}
}

// release ends the work on d: the call leaves the table, its slot is free if it was not before.
func (d *delivery) release() {
	d.cancel(nil)
	if d.entry.held {
		d.bus.table.remove(d.entry)
	}
	if d.freed {
		d.left()
		return
	}
	d.done()
}

func (d *delivery) admit() {
	ctx, cancel := context.WithCancelCause(d.work)
	d.cancel = cancel
	d.entry = &entry{id: idOf(d.call), queue: d.worker.Queue, seq: d.seq, reply: d.msg.Reply, deadline: d.deadline, cancel: cancel}
	present := d.bus.table.add(d.entry)
	if !d.settle(ctx, present) {
		d.release()
	}
}

// settle does what the rules say. later is true when the result is on its way to the stream and release is left to
// the answer.
func (d *delivery) settle(ctx context.Context, present *entry) (later bool) {
	if d.ref != nil && present == nil && !d.fetch(ctx) {
		return false
	}
	d.tool = (*d.tools.Load())[d.call.Tool]
	d.runOnce = !d.call.Idempotent || !d.tool.Idempotent
	a, err := d.admission(ctx, present)
	if err != nil {
		d.bus.log.Warn("call not admitted, it comes again", "call", d.call.String(), "error", err)
		return false
	}
	switch a.admit() {
	case admitRun:
		return d.start(ctx)
	case admitDone:
		d.ack()
	case admitDead:
		d.bury("its workers were lost on every attempt")
	case admitBusy:
		d.back("it is worked on here already", busyDelay())
	case admitNoTool:
		if d.worker.Limit > 0 && d.delivery > othersMay && !d.bus.served(d.worker.Queue, d.call.Tool) { // it takes the place of one that could run
			d.notStarted(schema.NoWorker, "no worker of the queue was found that has the tool")
			break
		}
		d.back("this worker lacks the tool "+schema.Cut(d.call.Tool, 128), noToolDelay)
	case admitStricter:
		d.back("the tool is run-once here and the call is not", noToolDelay)
	case admitExpired:
		d.notStarted(schema.Timeout, "its deadline passed while it waited in the queue")
	case admitLost:
		d.lost()
	}
	return false
}

// fetch reads the call that the message refers to. false: there is nothing to run; it is settled, or comes again.
func (d *delivery) fetch(ctx context.Context) bool {
	call, err := d.bus.calledBy(ctx, d.worker.Queue, *d.ref)
	switch {
	case err == nil:
		d.call = call
		return true
	case errors.Is(err, ErrNoBlob), errors.Is(err, schema.ErrPayload):
		d.bus.log.Warn("call cannot be read", "call", d.call.String(), "error", err)
		d.runOnce = true // nobody could begin it either
		d.notStarted(schema.ToolFailed, "its arguments are not in the object store, so it did not start")
	default:
		d.back("its arguments could not be read: "+schema.Cut(err.Error(), 256), noToolDelay)
	}
	return false
}

const noToolDelay = 2 * time.Second // before a call that this worker cannot run is offered again

// admission gathers what the rules need. Only deliveries after the first read anything.
func (d *delivery) admission(ctx context.Context, present *entry) (admission, error) {
	a := admission{
		inTable: present != nil,
		hasTool: d.tool.Name != "", callIdempotent: d.call.Idempotent, toolIdempotent: d.tool.Idempotent,
		first: d.delivery == 1, expired: !time.Now().Before(d.deadline), limit: d.worker.Attempts,
	}
	if d.delivery == 1 || a.inTable {
		return a, nil
	}
	result, err := d.bus.lookFact(ctx, d.call.Run, d.resultKey())
	if err != nil {
		return a, err
	}
	if a.hasResult = result != nil; a.hasResult {
		r, err := schema.DecodeResult(result.Data)
		a.lost = err == nil && r.Error != nil && r.Error.Type == schema.WorkerLost
	}
	if d.attempts > d.worker.Attempts {
		if d.attempts, err = d.countAttempts(ctx); err != nil {
			return a, err
		}
	}
	a.attempts = d.attempts
	return a, nil
}

func (d *delivery) resultKey() schema.Key { return d.call.ResultKey(d.worker.Queue) }

// start claims a run-once call with its begin, then runs it.
func (d *delivery) start(ctx context.Context) (later bool) {
	d.entry.active.Store(true)
	if !d.runOnce {
		return d.run(ctx)
	}
	switch err := d.begin(ctx); {
	case errors.Is(err, schema.ErrGuarded):
		d.entry.active.Store(false)
		d.ack() // it has its result
	case errors.Is(err, schema.ErrExists):
		d.entry.active.Store(false)
		d.begun()
	case err != nil:
		d.bus.log.Warn("begin not recorded, the call comes again", "call", d.call.String(), "error", err)
	case !time.Now().Before(d.deadline) || !d.bus.nc.IsConnected():
		d.finish(d.call.Fail(schema.Timeout, "its deadline passed, or the bus was lost, right before it would have started; it did not start"))
	default:
		return d.run(ctx)
	}
	return false
}

func (d *delivery) begin(ctx context.Context) error {
	b := &schema.Begin{Instance: d.bus.cfg.Instance, Delivery: d.delivery, Seq: d.seq, DeadlineMS: d.serverDeadline().UnixMilli()}
	_, err := d.bus.Append(ctx, d.call.Run, schema.BeginKey(d.call.Turn, d.call.Index, d.worker.Queue), b, d.resultKey())
	return err
}

// run executes the call and settles it.
func (d *delivery) run(ctx context.Context) (later bool) {
	ctx, cancel := context.WithDeadline(d.traced(ctx), d.deadline)
	defer cancel()
	ctx = schema.WithProgress(ctx, d.progress())
	ctx = schema.WithAttempt(ctx, d)
	ctx, span := tracing.StartProcess(ctx, tracing.Delivery{
		Message: tracing.Message{
			Template: d.bus.workTemplate, Subject: d.msg.Subject, Run: d.call.Run, Queue: d.worker.Queue,
			Turn: d.call.Turn, Index: d.call.Index, Size: len(d.msg.Data),
		},
		Consumer: d.worker.Queue, Instance: d.bus.cfg.Instance, Number: int(d.delivery),
	})
	started := d.bus.Now()
	r, pending := d.worker.Tools.Execute(ctx, d.call)
	if pending != nil {
		if d.retry(pending) {
			tracing.EndFailed(span, "Pending", pending.Reason)
			return false
		}
		r = d.call.Fail(schema.ToolFailed, pending.Reason)
	}
	r.StartedMS, r.QueuedMS = started.UnixMilli(), max(0, started.Sub(d.stored).Milliseconds())
	if d.interrupted(ctx, &r) {
		d.nak(0)
	} else {
		later = d.finishAsync(ctx, r)
	}
	if r.Error != nil {
		tracing.EndFailed(span, string(r.Error.Type), r.Error.Message)
	} else {
		span.End()
	}
	return later
}

// interrupted tells whether an idempotent call was cut short because this worker shuts down: another may run it.
func (d *delivery) interrupted(ctx context.Context, r *schema.Result) bool {
	return !d.runOnce && !r.OK && d.work.Err() != nil && time.Now().Before(d.deadline) &&
		context.Cause(ctx) == context.Cause(d.work) && d.attempts < d.worker.Attempts //nolint:errorlint // the very cause, which says that the whole service was stopped
}

// retry gives an idempotent call back to run again; false: there is no further attempt, so the trouble is its result.
func (d *delivery) retry(p *schema.Pending) bool {
	delay := max(time.Duration(p.RetryAfterMS)*time.Millisecond, retryDelay(d.attempts))
	if d.runOnce || d.attempts >= d.worker.Attempts || time.Now().Add(delay).After(d.deadline) {
		return false
	}
	d.nak(delay)
	return true
}

func (d *delivery) traced(ctx context.Context) context.Context {
	if d.msg.Header == nil {
		return ctx
	}
	return tracing.Extract(ctx, d.msg.Header)
}

func (d *delivery) progress() func(string) {
	var seq atomic.Uint64
	return func(text string) {
		subject := d.bus.names.progress(d.call.Run, d.call.Turn, d.call.Index)
		d.bus.send(subject, &Progress{Seq: seq.Add(1), Text: schema.Cut(schema.CleanText(text), 16<<10), Worker: d.bus.cfg.Instance})
	}
}
