package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/jetcrew/jetcrew/schema"
)

// Stop says what StopRun did.
type Stop struct {
	Slot    int  // the ctl slot that says stop
	Already bool // somebody else had written it
	Hinted  bool // the hint to cancel was sent; without it the owner's next look finds the slot
}

// StopRun stops a run durably: it writes the next free ctl slot as a stop, unless there is one, and sends the workers
// the hint to end its calls. The runs below it, which wait for nobody's word but their owners', are stopped with it. A run that waits in the queue is stopped before it is opened: whoever takes it asks no model
// and closes it. ErrNoRun, ErrRunClosed, or trouble with the transport.
func (b *Bus) StopRun(ctx context.Context, run, why string) (Stop, error) {
	return b.stopKnown(ctx, run, why, b.known)
}

// stopOpened is StopRun for runs that somebody has opened.
func (b *Bus) stopOpened(ctx context.Context, run, why string) (Stop, error) {
	return b.stopKnown(ctx, run, why, func(ctx context.Context, run string) error {
		_, err := b.opened(ctx, run)
		return err
	})
}

// stopKnown is StopRun for runs of which known returns no error.
func (b *Bus) stopKnown(ctx context.Context, run, why string, known func(context.Context, string) error) (Stop, error) {
	s, err := Stop{}, known(ctx, run)
	if err == nil {
		s, err = b.writeStop(ctx, run, why)
	}
	if err != nil {
		return s, fmt.Errorf("stop run %s: %w", run, err)
	}
	b.send(b.names.cancel(run), &Cancel{Reason: why})
	if err := b.stopBelow(ctx, run); err != nil {
		b.log.Warn("runs below a stopped one are left to its owner", "run", run, "error", err)
	}
	flush, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	s.Hinted = b.nc.FlushWithContext(flush) == nil
	return s, nil
}

// stopBelow stops the runs of a stopped run's open calls of agents, as many as it can. Its owner does that too, where it has
// one.
func (b *Bus) stopBelow(ctx context.Context, run string) error {
	facts, err := b.Facts(ctx, run, 0, schema.KindTurn, schema.KindResult)
	if err != nil {
		return err
	}
	settled := map[schema.Key]bool{}
	for _, f := range facts {
		settled[f.Key] = f.Key.Kind == schema.KindResult
	}
	var errs []error
	for _, f := range facts {
		var turn schema.Turn
		if f.Key.Kind != schema.KindTurn || schema.Decode(f.Data, &turn) != nil {
			continue
		}
		for i := range turn.Calls {
			if turn.Calls[i].Queue != schema.QueueAgents || settled[schema.ResultKey(f.Key.N, i, schema.QueueAgents)] {
				continue
			}
			if err := b.stopAttempts(ctx, run, f.Key.N, i, whyUnwanted); err != nil && !errors.Is(err, ErrNoRun) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

func (b *Bus) writeStop(ctx context.Context, run, why string) (Stop, error) {
	slots, err := b.Facts(ctx, run, 0, schema.KindCtl)
	if err != nil {
		return Stop{}, err
	}
	k := 0
	for _, f := range slots {
		if k = max(k, f.Key.N); isStop(f.Data) {
			return Stop{Slot: f.Key.N, Already: true}, b.stillOpen(ctx, run)
		}
	}
	slot := &schema.Ctl{Act: schema.CtlStop, Instance: b.cfg.Instance, Why: why, AtMS: b.Now().UnixMilli()}
	k, already, err := b.nextFree(ctx, run, k+1, schema.CtlKey, slot, isStop)
	return Stop{Slot: k, Already: already}, err
}

func isStop(data []byte) bool {
	var c schema.Ctl
	return schema.Decode(data, &c) == nil && c.Act == schema.CtlStop
}

// SayTo tells a run something, under the next free number, which it returns. Whoever owns the run answers. ErrNoRun,
// ErrRunQueued, ErrRunClosed, or trouble with the transport.
func (b *Bus) SayTo(ctx context.Context, run, text string) (int, error) {
	k, err := b.say(ctx, run, text)
	if err != nil {
		return 0, fmt.Errorf("say to run %s: %w", run, err)
	}
	return k, nil
}

func (b *Bus) say(ctx context.Context, run, text string) (int, error) {
	open, err := b.opened(ctx, run)
	if errors.Is(err, ErrNoRun) && b.known(ctx, run) == nil {
		err = ErrRunQueued
	}
	if err != nil {
		return 0, err
	}
	if open.Kind == schema.RunCall {
		return 0, errors.New("it is one call of a tool, which hears nothing")
	}
	says, err := b.Facts(ctx, run, 0, schema.KindSay)
	if err != nil {
		return 0, err
	}
	k := 0
	for _, f := range says {
		k = max(k, f.Key.N)
	}
	s := &schema.Say{Role: schema.RoleUser, Text: schema.CleanText(text), Source: schema.NewID(), AtMS: b.Now().UnixMilli()}
	k, _, err = b.nextFree(ctx, run, k+1, schema.SayKey, s, func([]byte) bool { return false })
	return k, err
}

// nextFree writes payload under the first free number from k on, while the run is not closed. Whoever was there first
// makes the next number the one to try, unless enough says that what is there will do.
func (b *Bus) nextFree(ctx context.Context, run string, k int, key func(int) schema.Key, payload schema.Encodable, enough func([]byte) bool) (at int, already bool, err error) {
	for ; ; k++ {
		_, err := b.Append(ctx, run, key(k), payload, schema.CloseKey())
		switch {
		case err == nil:
			return k, false, nil
		case errors.Is(err, schema.ErrGuarded):
			return 0, false, ErrRunClosed
		case !errors.Is(err, schema.ErrExists):
			return 0, false, err
		}
		have, err := b.lookFact(ctx, run, key(k))
		if err != nil {
			return 0, false, err
		}
		if have != nil && enough(have.Data) {
			return k, true, b.stillOpen(ctx, run)
		}
	}
}

// opened returns the first fact of a run; ErrNoRun: there is none.
func (b *Bus) opened(ctx context.Context, run string) (*schema.Open, error) {
	if !schema.ValidID(run) {
		return nil, ErrNoRun
	}
	m, err := b.lookFact(ctx, run, schema.OpenKey())
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, ErrNoRun
	}
	data, err := b.referred(ctx, schema.QueueAgents, run, m.Data)
	if err != nil {
		return nil, fmt.Errorf("its first fact: %w", err)
	}
	open := new(schema.Open)
	if err := schema.Decode(data, open); err != nil {
		return nil, fmt.Errorf("its first fact: %w", err)
	}
	return open, nil
}

func (b *Bus) stillOpen(ctx context.Context, run string) error {
	m, err := b.lookFact(ctx, run, schema.CloseKey())
	if err == nil && m != nil {
		err = ErrRunClosed
	}
	return err
}
