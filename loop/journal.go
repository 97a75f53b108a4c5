package loop

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// Bounds on one write or reading of facts. They do not end with the caller's context: a fact of which nobody knows
// whether it is written, because its writer has left, is the worst of both.
const (
	writeBound = 2 * time.Minute  // a backstop: a journal gives up by itself
	stopBound  = 10 * time.Second // of a stop slot: somebody waits for the calls to be cancelled
)

// write records a fact and puts it into the run's state.
func (r *Run) write(ctx context.Context, key schema.Key, p schema.Encodable, unless schema.Key) error {
	return r.writeWithin(ctx, writeBound, key, p, unless)
}

func (r *Run) writeWithin(ctx context.Context, bound time.Duration, key schema.Key, p schema.Encodable, unless schema.Key) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	seq, err := r.agent.cfg.Journal.Append(ctx, r.id, key, p, unless)
	if err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	raise(&r.seq, seq)
	if slices.Contains(controlKinds, key.Kind) {
		raise(&r.mark, seq)
	}
	r.state.Put(key, p)
	return nil
}

// controlKinds are the kinds by which others make themselves known to the owner of a run.
var controlKinds = []schema.Kind{schema.KindCtl, schema.KindSay, schema.KindAnswer, schema.KindClose}

// refresh reads all facts up to the last one this process wrote.
func (r *Run) refresh(ctx context.Context) error { return r.read(ctx, r.seq.Load()) }

// catchUp reads what others have done to the run, and everything if there is a newer slot. An owner whose slot is the
// newest one knows the rest: turns and their calls are its own.
func (r *Run) catchUp(ctx context.Context) error {
	if err := r.read(ctx, r.mark.Load(), controlKinds...); err != nil {
		return err
	}
	if r.state.Ctls() > r.own {
		return r.refresh(ctx)
	}
	return nil
}

func (r *Run) read(ctx context.Context, upto uint64, kinds ...schema.Kind) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBound)
	defer cancel()
	facts, err := r.agent.cfg.Journal.Facts(ctx, r.id, upto, kinds...)
	if err != nil {
		return fmt.Errorf("read facts: %w", err)
	}
	for _, f := range facts {
		r.apply(f)
	}
	return nil
}

func (r *Run) apply(f schema.Fact) {
	if err := r.state.Apply(f); err != nil {
		r.agent.cfg.Logger.Warn("a fact cannot be read", "run", r.id, "fact", f.Key.String(), "error", err)
	}
}

func raise(a *atomic.Uint64, to uint64) {
	for old := a.Load(); old < to && !a.CompareAndSwap(old, to); old = a.Load() {
	}
}

func nowMS() int64 { return time.Now().UnixMilli() }
