package bus

import (
	"context"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// How the worker that began a call is asked whether it still runs it.
const (
	askTimeout = time.Second
	askSilence = 2 * AckWait // unbroken, on a healthy connection: then it counts as gone
)

// begun handles a run-once call that somebody began: its worker is asked until it answers, its result is there, or it
// was silent for too long. The hint to cancel is for who runs the call: repeated, it would keep this from ever ending.
func (d *delivery) begun() {
	ctx := d.work
	key := schema.BeginKey(d.call.Turn, d.call.Index, d.worker.Queue)
	m, err := d.bus.lookFact(ctx, d.call.Run, key)
	if err != nil || m == nil {
		d.bus.log.Warn("begin not found, the call comes again", "call", d.call.String(), "error", err)
		return
	}
	var b schema.Begin
	switch err := schema.Decode(m.Data, &b); {
	case err == nil && b.Seq != d.seq:
		d.ack() // another copy began: this one settles nothing
	case err != nil || !schema.ValidID(b.Instance):
		d.bus.log.Warn("begin names nobody who could be asked", "call", d.call.String(), "instance", schema.Cut(b.Instance, 64), "error", err)
		d.unknown(ctx) // it stays so: a fact never changes
	default:
		d.ask(ctx, &b)
	}
}

func (d *delivery) ask(ctx context.Context, b *schema.Begin) {
	silent := time.Now()
	for ctx.Err() == nil {
		switch running, err := d.askOnce(ctx, b); {
		case err != nil:
			if !d.bus.unbrokenSince(silent) {
				silent = time.Now() // silence counts only on a healthy connection
			}
		case running:
			d.back("it runs at "+b.Instance, AckWait)
			return
		default:
			d.unknown(ctx)
			return
		}
		if m, err := d.bus.lookFact(ctx, d.call.Run, d.resultKey()); err == nil && m != nil {
			d.ack()
			return
		}
		if time.Since(silent) >= askSilence {
			d.unknown(ctx)
			return
		}
		_ = backoff(ctx, 6)
	}
}

func (d *delivery) askOnce(ctx context.Context, b *schema.Begin) (running bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	q := &OwnQuery{Run: d.call.Run, Turn: d.call.Turn, Index: d.call.Index, Seq: d.seq}
	data, err := schema.Encode(q)
	if err != nil {
		return false, err
	}
	m, err := d.bus.nc.RequestWithContext(ctx, d.bus.names.own(b.Instance), data)
	if err != nil {
		return false, err
	}
	var r OwnReply
	err = schema.Decode(m.Data, &r)
	return r.Running, err
}

// unknown settles a call that began and that nobody runs any more.
func (d *delivery) unknown(ctx context.Context) {
	m, err := d.bus.lookFact(ctx, d.call.Run, d.resultKey())
	if err != nil {
		return // it comes again
	}
	if m != nil {
		d.ack()
		return
	}
	d.finish(d.call.Fail(schema.OutcomeUnknown,
		"the worker that began the call is gone; it may or may not have taken effect, do not repeat it blindly"))
}
