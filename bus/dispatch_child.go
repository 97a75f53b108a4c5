package bus

import (
	"context"
	"errors"

	"github.com/jetcrew/jetcrew/schema"
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
	if err := o.bus.stopAttempts(ctx, o.call.Run, o.call.Turn, o.call.Index, o.ended()); err != nil {
		o.bus.log.Warn("child run not stopped yet", "call", o.call.String(), "error", err)
		return
	}
	o.place(0)
}

// stopAttempts stops the runs of an agent's call, of which each attempt has one. An attempt that is open may have opened
// the next one before the stop came to it, so that is looked for in any case. ErrNoRun: there is no first one yet.
func (b *Bus) stopAttempts(ctx context.Context, run string, turn, index int, why string) error {
	for attempt := 1; ; attempt++ {
		_, err := b.stopOpened(ctx, schema.ChildRun(run, turn, index, attempt), why)
		switch {
		case errors.Is(err, ErrNoRun) && attempt > 1:
			return nil
		case err != nil && !errors.Is(err, ErrRunClosed):
			return err
		}
	}
}
