package bus

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

// finish records the result and acknowledges. A result that is there already is the call's outcome; this one came late
// and changes nothing.
func (d *delivery) finish(r schema.Result) {
	d.settled(d.record(r, ""))
}

// finishAsync is finish for the usual way of a call: nobody waits for the stream to say that it has the result, which
// takes a while on several servers. The slot is free from here on, and who hears the stream releases d. It returns false when there is nothing to
// wait for.
func (d *delivery) finishAsync(ctx context.Context, r schema.Result) (later bool) {
	data, err := d.sign(r)
	if err != nil {
		d.bus.log.Error("result not encoded, the call comes again", "call", d.call.String(), "error", err)
		return false
	}
	subject := d.bus.names.fact(d.call.Run, d.resultKey())
	m := factMsg(subject, data, "")
	ctx, span := tracing.StartPublish(ctx, tracing.Message{
		Template: d.bus.resultTemplate, Subject: subject, Run: d.call.Run, Queue: d.worker.Queue,
		Turn: d.call.Turn, Index: d.call.Index, Size: len(data),
	})
	defer span.End()
	tracing.Inject(ctx, m.Header)
	d.freed = true
	d.leave()
	err = d.bus.publishAsync(m, func(_ uint64, err error) {
		if err == nil {
			d.ack()
			d.release()
			return
		}
		// This goroutine hears the answers of all others and must not wait.
		d.finishLater(subject, data, err)
	})
	if err != nil {
		d.finishLater(subject, data, err)
	}
	return true
}

// finishLater has finishAgain done elsewhere. A bus that is closed records nothing: the call comes again.
func (d *delivery) finishLater(subject string, data []byte, err error) {
	if !d.bus.task(func() { d.finishAgain(subject, data, err) }) {
		d.release()
	}
}

// finishAgain takes a result whose first publish went wrong to its end.
func (d *delivery) finishAgain(subject string, data []byte, err error) {
	defer d.release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.work), d.patience(time.Now()))
	defer cancel()
	_, err = d.bus.recordAgain(ctx, subject, data, "", err)
	d.settled(err)
}

// patience is how long a result is kept for a server that is away: until the call's deadline, after which its owner
// settles it. Given up before, a run-once call that succeeded would end as OutcomeUnknown.
func (d *delivery) patience(now time.Time) time.Duration {
	return max(writeTimeout, d.deadline.Sub(now))
}

// settled acknowledges once the call has a result, this one or an earlier one.
func (d *delivery) settled(err error) {
	if err != nil && !errors.Is(err, schema.ErrExists) {
		d.bus.log.Error("result not recorded, the call comes again", "call", d.call.String(), "error", err)
		return
	}
	d.ack()
}

// sign encodes r under this worker's name, cut to what fits into a message.
func (d *delivery) sign(r schema.Result) ([]byte, error) {
	r.Worker, r.Delivery, r.EndedMS = d.bus.cfg.Instance, d.delivery, d.bus.Now().UnixMilli()
	if kept := d.kept.Load(); kept != nil {
		r.Blob, r.Size = kept.Name, kept.Size
	}
	data, err := schema.Encode(&r)
	if err != nil || len(data) <= schema.MaxInline {
		return data, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.work), d.patience(time.Now()))
	defer cancel()
	d.bus.fitResult(ctx, d.worker.Queue, d.call, &r)
	return schema.Encode(&r)
}

// record writes r under this worker's name. It outlives the call's context: a late result must still be written.
func (d *delivery) record(r schema.Result, guard string) error {
	data, err := d.sign(r)
	if err != nil {
		return err
	}
	_, err = d.bus.record(context.WithoutCancel(d.work), d.bus.names.fact(d.call.Run, d.resultKey()), data, guard)
	return err
}

// notStarted settles a call that did not start here. Of a run-once call it is claimed only while nobody began it.
func (d *delivery) notStarted(t schema.ErrorType, why string) {
	switch err := d.record(d.call.Fail(t, why), d.beginGuard()); {
	case err == nil, errors.Is(err, schema.ErrExists):
		d.ack()
	case errors.Is(err, schema.ErrGuarded):
		d.begun()
	default:
		d.bus.log.Warn("result not recorded, the call comes again", "call", d.call.String(), "error", err)
	}
}

func (d *delivery) beginGuard() string {
	if !d.runOnce {
		return ""
	}
	return d.bus.names.fact(d.call.Run, schema.BeginKey(d.call.Turn, d.call.Index, d.worker.Queue))
}

// lost gives up a call whose workers died as often as the limit allows.
func (d *delivery) lost() {
	r := d.call.Failf(schema.WorkerLost, "its worker was lost on each of %d attempts", d.attempts-1)
	switch err := d.record(r, d.beginGuard()); {
	case errors.Is(err, schema.ErrGuarded):
		d.begun()
	case err == nil, errors.Is(err, schema.ErrExists):
		d.bury(r.Error.Message)
	default:
		d.bus.log.Warn("result not recorded, the call comes again", "call", d.call.String(), "error", err)
	}
}

// DeadLetter is the record of a message that no worker could finish, on jc.dead.<queue>.
type DeadLetter struct {
	schema.Payload
	Queue    string `msgpack:"queue" json:"queue"`                   // of the message
	Reason   string `msgpack:"reason" json:"reason"`                 // why it was given up, up to 4 KiB
	Seq      uint64 `msgpack:"seq" json:"seq"`                       // WORK sequence
	Delivery uint64 `msgpack:"delivery" json:"delivery"`             // the last one, from the ack subject
	Worker   string `msgpack:"worker" json:"worker"`                 // instance that gave it up
	Data     []byte `msgpack:"data" json:"data"`                     // the message's payload, at most the first 512 KiB
	Size     int64  `msgpack:"size,omitempty" json:"size,omitempty"` // bytes of the whole payload when data is only its beginning
	AtMS     int64  `msgpack:"at_ms" json:"at_ms"`                   // server clock, Unix ms
}

const maxBuried = 512 << 10 // bytes of a payload that a dead letter keeps: with the rest it must fit into a message

// bury keeps what the message held and ends it.
func (d *delivery) bury(reason string) {
	letter := &DeadLetter{
		Queue: d.worker.Queue, Reason: schema.Cut(reason, 4<<10), Seq: d.seq, Delivery: d.delivery,
		Worker: d.bus.cfg.Instance, Data: d.msg.Data, AtMS: d.bus.Now().UnixMilli(),
	}
	if len(letter.Data) > maxBuried {
		letter.Data, letter.Size = letter.Data[:maxBuried], int64(len(letter.Data))
	}
	data, err := schema.Encode(letter)
	if err == nil {
		_, err = d.bus.publish(&nats.Msg{Subject: d.bus.names.deadSubject(d.worker.Queue), Data: data})
	}
	if err != nil && !errors.Is(err, errTooLarge) {
		d.bus.log.Warn("dead letter not stored, the message comes again", "queue", d.worker.Queue, "seq", d.seq, "error", err)
		return
	}
	d.bus.log.Warn("message given up", "queue", d.worker.Queue, "seq", d.seq, "reason", reason)
	if d.held() { // else it comes again
		d.reply(ackTerm)
	}
}

// back gives a delivery that did not start back to the queue, in writing: it does not count as an attempt.
func (d *delivery) back(reason string, delay time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.work), publishTimeout)
	defer cancel()
	key := schema.BackKey(d.call.Turn, d.call.Index, d.worker.Queue, d.seq, d.delivery)
	_, err := d.bus.Append(ctx, d.call.Run, key, &schema.Back{Instance: d.bus.cfg.Instance, Reason: reason}, schema.Key{})
	if err != nil && !errors.Is(err, schema.ErrExists) {
		d.bus.log.Warn("hand-back not recorded, AckWait gives the call back", "call", d.call.String(), "error", err)
		return
	}
	d.nak(delay)
}

// nak gives a delivery back, if it is still this process's.
func (d *delivery) nak(delay time.Duration) {
	if d.held() {
		d.reply(nakAfter(delay))
	}
}

// held tells whether there was contact to the server all the time. After a break the message may be somebody else's by
// now: a nak would deliver it once more, a termination would take it away from who works on it. A result and an
// acknowledgement do no harm.
func (d *delivery) held() bool { return d.bus.unbrokenSince(d.received) }

func (d *delivery) ack() { d.bus.ackSoon(d.msg.Reply) }

func (d *delivery) reply(word []byte) {
	if err := d.bus.nc.Publish(d.msg.Reply, word); err != nil {
		d.bus.log.Warn("acknowledgement not sent, the call comes again", "call", d.seq, "error", err)
	}
}

// countAttempts counts the deliveries that were not given back, this one included. What the reading lacks may be there
// all the same, so before they are more than the limit the leader is asked about each.
func (d *delivery) countAttempts(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	key := func(n uint64) schema.Key { return schema.BackKey(d.call.Turn, d.call.Index, d.worker.Queue, d.seq, n) }
	filter := strings.TrimSuffix(d.bus.names.fact(d.call.Run, key(0)), "0") + "*"
	facts, err := d.bus.multiGet(ctx, []string{filter})
	if errors.Is(err, errTooMany) {
		facts, err = d.bus.pages(ctx, filter)
	}
	if err != nil {
		return 0, err
	}
	backs := make(map[uint64]bool, len(facts))
	for _, f := range facts {
		backs[f.Key.Delivery] = true
	}
	attempts := int(d.delivery) - len(backs)
	for n := uint64(1); n < d.delivery && attempts > d.worker.Attempts; n++ {
		if backs[n] {
			continue
		}
		back, err := d.bus.lookFact(ctx, d.call.Run, key(n))
		if err != nil {
			return 0, err
		}
		if back != nil {
			attempts--
		}
	}
	return attempts, nil
}
