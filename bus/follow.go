package bus

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/schema"
)

// Follow returns every fact of a run once and in stored order, those that are there and those to come, until close has
// been returned or ctx ends, whose error is then the last thing. It hears the run before it reads it, so that nothing
// falls between. Live messages only say that there is something to read; what is missed of them is read a few seconds
// later. Facts that strangers made up are left out.
func (b *Bus) Follow(ctx context.Context, run string) iter.Seq2[schema.Fact, error] {
	return func(yield func(schema.Fact, error) bool) {
		f := &follower{bus: b, run: run, news: make(chan struct{}, 1)}
		sub, err := b.nc.Subscribe(b.names.live(run), f.hear)
		if err != nil {
			yield(schema.Fact{}, fmt.Errorf("follow run %s: %w", run, err))
			return
		}
		defer sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
		if err := f.work(ctx, yield); err != nil {
			yield(schema.Fact{}, fmt.Errorf("follow run %s: %w", run, err))
		}
	}
}

// follower reads one run to its end.
type follower struct {
	bus   *Bus
	run   string
	news  chan struct{} // buffered 1
	heard atomic.Uint64 // highest sequence of a live message
	last  uint64        // sequence read last
}

func (f *follower) hear(m *nats.Msg) {
	seq, err := strconv.ParseUint(stamp(m, headerSequence), 10, 64)
	if err != nil {
		return // no stream sent it
	}
	for old := f.heard.Load(); old < seq && !f.heard.CompareAndSwap(old, seq); old = f.heard.Load() {
	}
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// work returns nil when close was returned, or the reader wants no more.
func (f *follower) work(ctx context.Context, yield func(schema.Fact, error) bool) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for attempt := 1; ; {
		heard := f.heard.Load()
		done, err := f.read(ctx, yield)
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case f.bus.hopeless(err):
			return err
		case err != nil || f.last < heard && attempt < maxBehind: // the connection broke, or a replica is behind
			_ = backoff(ctx, attempt) // an ended ctx is seen by the next reading
			attempt++
			continue
		}
		attempt = 1
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.news:
		case <-tick.C:
		}
	}
}

const maxBehind = 10 // readings for a live message that may be forged, or a stranger's

// read hands over what is there after the fact read last, page by page.
func (f *follower) read(ctx context.Context, yield func(schema.Fact, error) bool) (done bool, err error) {
	for {
		var facts []schema.Fact
		p, err := f.page(ctx, &facts)
		if err != nil {
			return false, err
		}
		for i := range facts {
			fact := &facts[i]
			if err := f.bus.referredFact(ctx, fact); err != nil {
				return false, err
			}
			if !yield(*fact, nil) || fact.Key == schema.CloseKey() {
				return true, nil
			}
			f.last = fact.Seq
		}
		f.last = max(f.last, p.last)
		if !p.more {
			return false, nil
		}
	}
}

func (f *follower) page(ctx context.Context, facts *[]schema.Fact) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	return f.bus.directGet(ctx, f.bus.names.runs(), following(f.bus.names.facts(f.run), f.last+1, keptAtOnce), func(m *nats.Msg) {
		*facts = f.bus.appendFact(*facts, m)
	})
}
