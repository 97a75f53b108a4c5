package bus

import (
	"context"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// Look reads a fact's payload at the leader of the stream of runs; nil: it is absent.
func (b *Bus) Look(ctx context.Context, run string, key schema.Key) ([]byte, error) {
	m, err := b.lookFact(ctx, run, key)
	if err != nil || m == nil {
		return nil, err
	}
	return m.Data, nil
}

// Glimpse reads a fact's payload at whichever replica answers; nil: the replica does not have it.
func (b *Bus) Glimpse(ctx context.Context, run string, key schema.Key) ([]byte, error) {
	facts, err := b.multiGet(ctx, []string{b.names.fact(run, key)})
	if err != nil || len(facts) == 0 {
		return nil, err
	}
	return facts[0].Data, nil
}

// Pages reads the facts that a filter matches page by page.
func (b *Bus) Pages(ctx context.Context, filter string) ([]schema.Fact, error) {
	return b.pages(ctx, filter)
}

// Buffer limits how many live messages of a run, which is watched, may wait for their reader.
func (b *Bus) Buffer(run string, limit int) error {
	f, err := b.join(run)
	if err != nil {
		return err
	}
	defer b.leave(f)
	for _, s := range f.subs {
		if err := s.SetPendingLimits(limit, -1); err != nil {
			return err
		}
	}
	return nil
}

// Lost returns how many live messages of a run, which is watched, found no place.
func (b *Bus) Lost(run string) (n int, err error) {
	f, err := b.join(run)
	if err != nil {
		return 0, err
	}
	defer b.leave(f)
	for _, s := range f.subs {
		dropped, err := s.Dropped()
		if err != nil {
			return 0, err
		}
		n += dropped
	}
	return n, nil
}

// Received counts the messages that came over the connection.
func (b *Bus) Received() uint64 { return b.nc.Stats().InMsgs }

// LookFor makes b give up agents that nobody serves sooner than it does.
func (b *Bus) LookFor(d time.Duration) { b.unservedAfter = d }

// Unserved tells whether a call of an agent, published an hour ago, would be given up now.
func (b *Bus) Unserved(agent string) bool { return b.unserved(agent, time.Now().Add(-time.Hour)) }

// Unbroken tells whether the connection is there, and every break of it was heard of.
func (b *Bus) Unbroken() bool { return b.unbrokenSince(time.Now()) }

// Connected tells whether the connection is there.
func (b *Bus) Connected() bool { return b.nc.IsConnected() }

// WakeAt has a run woken at a time.
func (b *Bus) WakeAt(run string, at time.Time) error { return b.wakeAt(run, at) }
