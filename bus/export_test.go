package bus

import (
	"context"

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
