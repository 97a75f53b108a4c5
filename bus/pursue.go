package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

const (
	cancelEvery = time.Second     // how often the hint to cancel is repeated
	stopEvery   = 5 * time.Second // how often it is made sure that a child's stop stands
)

// whyUnwanted says for workers why a call ends that was stopped.
const whyUnwanted = "the caller does not want it any more"

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

// publishAgain takes what went wrong with the last attempt. Silence is answered by another copy, which the facts make
// harmless, unless the call has its result by now; a refusal is the call's outcome.
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
		case o.bus.hopeless(err):
			return 0, err
		}
		if ev := o.glance(); ev != evPublished {
			return ev, nil
		}
		_ = backoff(o.ctx, attempt) // an ended ctx is seen by the next glance
		recorded, lookErr := o.bus.lookFact(o.ctx, o.call.Run, o.key)
		switch {
		case lookErr != nil && o.bus.hopeless(lookErr):
			return 0, lookErr
		case lookErr != nil:
			continue
		case recorded != nil:
			o.read(recorded.Data)
			return evSettled, nil
		}
		err = o.publishCopy()
	}
}

// publishCopy publishes the call once more.
func (o *owner) publishCopy() error {
	m, err := o.refer()
	if err != nil {
		return err
	}
	tracing.Inject(o.ctx, m.Header)
	seq, err := o.bus.publish(m)
	if err == nil {
		o.place(seq)
	}
	return err
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
		if ev == evUnserved && !o.unserved() {
			ev = evPublished // nothing has happened
		}
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
		if look := o.lookNext(); look.Before(o.deadline) {
			return look, evUnserved
		}
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
		o.heedBegin(ctx)
		o.began = true
		if o.state.missed {
			o.bus.log.Info("nobody serves an agent whose call has begun", "call", o.call.String(), "agent", o.call.Tool)
		}
		return evGuarded, nil
	case errors.Is(err, schema.ErrExists):
		return o.look(ctx)
	}
	return 0, err
}

// heedBegin brings the deadline of a call that has begun forward to the one that its worker knows: an earlier owner may
// have published it, a long time ago. What cannot be read changes nothing, nor does a deadline before begin itself, which
// is no worker's.
func (o *owner) heedBegin(ctx context.Context) {
	if o.state.child {
		return
	}
	m, err := o.bus.lookFact(ctx, o.call.Run, o.call.StartKey(o.queue))
	var b schema.Begin
	if err != nil || m == nil || schema.Decode(m.Data, &b) != nil || b.DeadlineMS < m.Time.UnixMilli() {
		return
	}
	if end := time.UnixMilli(b.DeadlineMS).Add(-time.Duration(o.bus.clock.offset.Load())); end.Before(o.deadline) {
		o.deadline = end
	}
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
	return whyUnwanted
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
	case schema.NoWorker:
		return o.unservedText()
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
