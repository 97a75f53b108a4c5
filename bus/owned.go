package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

// goneAfter is how long nobody must hear an owner's questions before its run is taken over. It is less than askSilence
// because a wrong answer costs a model request only: the old owner loses its next write.
const goneAfter = 2 * time.Second

// ownedDelay is how long a message stays away for a run that somebody works on. It is jittered: the call that starts a
// run and a wake-up for it would else come together again and again, and hold each other up.
func ownedDelay() time.Duration { return time.Second + rand.N(time.Second) }

// StartRun publishes the call that starts a run of its own: turn 0, the agent as tool, the task in its arguments.
// Whichever orchestrator takes it opens the run.
func (b *Bus) StartRun(ctx context.Context, call *schema.Call) error {
	data, err := schema.Encode(call)
	if err != nil {
		return fmt.Errorf("start run %s: %w", call.Run, err)
	}
	if len(data) > schema.MaxInline {
		if data, err = b.referCall(ctx, schema.QueueAgents, call, data); err != nil {
			return fmt.Errorf("start run %s: %w", call.Run, err)
		}
	}
	if err := b.checkRoom(ctx); err != nil {
		return fmt.Errorf("start run %s: %w", call.Run, err)
	}
	m := &nats.Msg{Subject: b.names.workSubject(schema.QueueAgents), Header: nats.Header{}, Data: data}
	tracing.Inject(ctx, m.Header)
	if _, err := b.publish(m); err != nil {
		return fmt.Errorf("start run %s: %w", call.Run, err)
	}
	return nil
}

// owned tells whether another instance works on a run that message seq brings. The newest own slot names the instance
// and the message it works on: another message that still exists means that its owner is alive or that the message
// comes again to whoever goes on; the same one, redelivered, means to ask. next is the slot after all that were seen.
func (b *Bus) owned(ctx context.Context, run string, seq uint64) (owned bool, next int, err error) {
	facts, err := b.Facts(ctx, run, 0, schema.KindCtl, schema.KindClose)
	if err != nil {
		return false, 0, err
	}
	var own *schema.Ctl
	next = 1
	for _, f := range facts {
		if f.Key.Kind == schema.KindClose {
			return false, 0, nil
		}
		next = max(next, f.Key.N+1)
		if c := new(schema.Ctl); schema.Decode(f.Data, c) == nil && c.Act == schema.CtlOwn {
			own = c
		}
	}
	owned, err = b.ownedBy(ctx, run, own, seq)
	return owned, next, err
}

// ownedBy is owned for the newest own slot; nil: there is none.
func (b *Bus) ownedBy(ctx context.Context, run string, own *schema.Ctl, seq uint64) (bool, error) {
	switch {
	case own == nil || own.Instance == b.cfg.Instance && own.Seq != 0 || !schema.ValidID(own.Instance):
		return false, nil // nobody's, or this process's own that has left it
	case own.Seq != 0 && own.Seq != seq:
		return b.waiting(ctx, own.Seq)
	}
	return b.ownerAlive(ctx, run, own)
}

// waiting tells whether the message seq is still in the work stream, asking its leader.
func (b *Bus) waiting(ctx context.Context, seq uint64) (bool, error) {
	body, err := json.Marshal(map[string]uint64{"seq": seq})
	if err != nil {
		return false, err
	}
	m, err := b.leaderGet(ctx, b.names.work(), body)
	if err != nil {
		return false, fmt.Errorf("look at message %d: %w", seq, err)
	}
	return m != nil, nil
}

// ownerAlive asks the owner of a run until it answers or has been silent for too long on a healthy connection.
func (b *Bus) ownerAlive(ctx context.Context, run string, own *schema.Ctl) (bool, error) {
	silent, deaf := time.Now(), time.Now() // since when: no answer; and since when nobody listens
	for ctx.Err() == nil {
		began := time.Now()
		running, err := b.askOwner(ctx, run, own)
		switch {
		case err == nil:
			return running, nil
		case !b.unbrokenSince(silent):
			silent, deaf = time.Now(), time.Now()
		case !errors.Is(err, nats.ErrNoResponders):
			deaf = time.Now()
		}
		if began.Sub(deaf) >= goneAfter || time.Since(silent) >= askSilence {
			return false, nil
		}
		_ = backoff(ctx, 5)
	}
	return false, ctx.Err()
}

func (b *Bus) askOwner(ctx context.Context, run string, own *schema.Ctl) (running bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	data, err := schema.Encode(&OwnQuery{Run: run, Seq: own.Seq})
	if err != nil {
		return false, err
	}
	m, err := b.nc.RequestWithContext(ctx, b.names.own(own.Instance), data)
	if err != nil {
		return false, err
	}
	var r OwnReply
	err = schema.Decode(m.Data, &r)
	return r.Running, err
}

// owns tells whether this process works on a run: as delivered under seq, or, for 0, as one that it started itself
// and therefore hears.
func (b *Bus) owns(run string, seq uint64) bool {
	if seq > 0 {
		return b.table.running(callID{run: run}, seq)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.feeds[run] != nil
}
