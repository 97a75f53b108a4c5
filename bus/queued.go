package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/schema"
)

// FindQueued is FindRun that also finds a run which waits in the queue and that nobody has opened yet.
func (b *Bus) FindQueued(ctx context.Context, prefix string) (string, error) {
	run, err := b.FindRun(ctx, prefix)
	if !errors.Is(err, ErrNoRun) || !schema.ValidID(prefix) {
		return run, err
	}
	found, lookErr := b.queuedLike(ctx, prefix)
	switch {
	case lookErr != nil:
		return "", fmt.Errorf("find run %s in the queue: %w", prefix, lookErr)
	case slices.Contains(found, prefix):
		return prefix, nil
	case len(found) > 1:
		return "", &AmbiguousError{Prefix: prefix, Runs: found[:2]}
	case len(found) == 1:
		return found[0], nil
	}
	return b.FindRun(ctx, prefix) // it may have been opened while the queue was looked through
}

// known returns ErrNoRun when neither a fact nor a message of the queue names a run.
func (b *Bus) known(ctx context.Context, run string) error {
	_, err := b.opened(ctx, run)
	if !errors.Is(err, ErrNoRun) || !schema.ValidID(run) {
		return err
	}
	found, err := b.queuedLike(ctx, run)
	if err != nil || slices.Contains(found, run) {
		return err
	}
	_, err = b.opened(ctx, run) // while the queue was looked through
	return err
}

// queuedLike returns the runs whose ids begin with prefix and that a message of the queue agents brings, sorted. It asks
// the leader for one message after another: what a replica lacks may be there all the same.
func (b *Bus) queuedLike(ctx context.Context, prefix string) (found []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for seq := uint64(1); ; seq++ {
		m, err := b.nextQueued(ctx, seq)
		if err != nil || m == nil {
			slices.Sort(found)
			return slices.Compact(found), err
		}
		if run, ok := broughtRun(m); ok && strings.HasPrefix(run, prefix) {
			found = append(found, run)
		}
		seq = m.Sequence
	}
}

// nextQueued returns the first message of the queue agents from a sequence on; nil: there is none.
func (b *Bus) nextQueued(ctx context.Context, seq uint64) (*jetstream.RawStreamMsg, error) {
	body, err := json.Marshal(map[string]any{"next_by_subj": b.names.workFilter(schema.QueueAgents), "seq": seq})
	if err != nil {
		return nil, err
	}
	return b.leaderGet(ctx, b.names.work(), body)
}

// broughtRun returns the run that a message of the queue agents brings.
func broughtRun(m *jetstream.RawStreamMsg) (run string, ok bool) {
	call := &schema.Call{}
	if ref, isRef := schema.ParseReference(m.Data); isRef {
		call.Run, call.Turn, call.Index = ref.Run, ref.Turn, ref.Index
	} else if c, err := schema.DecodeCall(m.Data); err == nil {
		call = c
	} else {
		return "", false // a wake-up, of a run that is open, or a stranger's
	}
	return startedBy(call), true
}
