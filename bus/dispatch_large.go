package bus

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/schema"
)

// store has a call that is too large for a message pursued from its publish on.
func (o *owner) store() {
	o.msg = nil
	if o.claim() {
		go func() { o.pursue(o.publishLarge()) }()
	}
}

// publishLarge sends a call that is too large for a message: a reference, once the call lies in the object store.
func (o *owner) publishLarge() (ownerEvent, error) {
	m, err := o.refer()
	if err == nil {
		span := o.span(m)
		var seq uint64
		if seq, err = o.bus.publish(m); err == nil {
			o.place(seq)
		}
		span.End()
	}
	return o.publishAgain(err)
}

// refer makes the call's message, and stores the call before if it is too large for one.
func (o *owner) refer() (*nats.Msg, error) {
	m, err := o.message()
	if err != nil || len(m.Data) <= schema.MaxInline {
		return m, err
	}
	ctx, cancel := context.WithDeadline(o.ctx, o.deadline)
	defer cancel()
	m.Data, err = o.bus.referCall(ctx, o.queue, o.call, m.Data)
	return m, err
}
