package bus

import (
	"context"
	"errors"
)

// place says that the call goes on without this process.
func (o *owner) place(seq uint64) {
	if o.placed != nil {
		o.placed(o.call.Index, seq, o.server)
	}
}

// stopChild has the child run of the call stopped.
func (o *owner) stopChild() {
	ctx, cancel := context.WithTimeout(o.bus.life, publishTimeout)
	defer cancel()
	_, err := o.bus.stopOpened(ctx, o.call.StartKey(o.queue).Run, o.ended())
	if err != nil && !errors.Is(err, ErrRunClosed) {
		o.bus.log.Warn("child run not stopped yet", "call", o.call.String(), "error", err)
		return
	}
	o.place(0)
}
