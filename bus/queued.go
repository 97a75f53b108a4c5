package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/schema"
)

// FindQueued is FindRun that also finds a run which waits in the queue and that nobody has opened yet.
func (b *Bus) FindQueued(ctx context.Context, prefix string) (string, error) {
	run, err := b.FindRun(ctx, prefix)
	if run == prefix || !schema.ValidID(prefix) || err != nil && !errors.Is(err, ErrNoRun) {
		return run, err
	}
	found, lookErr := b.queuedLike(ctx, prefix)
	if lookErr != nil {
		return "", fmt.Errorf("find run %s in the queue: %w", prefix, lookErr)
	}
	if err == nil && !slices.Contains(found, run) {
		found = append(found, run)
	}
	switch {
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

// queuedLike returns the runs whose ids begin with prefix and that a message of the queue agents brings, sorted.
func (b *Bus) queuedLike(ctx context.Context, prefix string) (found []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for m, err := range b.queuedMessages(ctx) {
		if err != nil {
			return nil, err
		}
		if call, ok := broughtCall(m); ok && strings.HasPrefix(startedBy(call), prefix) {
			found = append(found, startedBy(call))
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// QueuedRun is a run that waits in the queue agents and that nobody has opened yet.
type QueuedRun struct {
	ID   string
	At   time.Time    // when it was put there
	Call *schema.Call // starts it; the arguments are missing when they are too large for a message
}

// Queued returns the runs that wait in the queue, oldest first, while they are asked for. It reads the queue message by
// message, those of runs under way among them. After an error nothing follows.
func (b *Bus) Queued(ctx context.Context) iter.Seq2[QueuedRun, error] {
	return func(yield func(QueuedRun, error) bool) {
		seen := map[string]bool{}
		for m, err := range b.queuedMessages(ctx) {
			if err != nil {
				yield(QueuedRun{}, fmt.Errorf("list the queue: %w", err))
				return
			}
			call, ok := broughtCall(m)
			if !ok || seen[startedBy(call)] {
				continue
			}
			run := startedBy(call)
			seen[run] = true
			open, err := b.lookFact(ctx, run, schema.OpenKey())
			if err != nil {
				yield(QueuedRun{}, fmt.Errorf("list the queue: %w", err))
				return
			}
			if open == nil && !yield(QueuedRun{ID: run, At: m.Time, Call: call}, nil) {
				return
			}
		}
	}
}

// queuedMessages returns what lies in the queue agents, oldest first. It asks the leader for one message after another:
// what a replica lacks may be there all the same.
func (b *Bus) queuedMessages(ctx context.Context) iter.Seq2[*jetstream.RawStreamMsg, error] {
	return func(yield func(*jetstream.RawStreamMsg, error) bool) {
		for seq := uint64(1); ; seq++ {
			m, err := b.nextQueued(ctx, seq)
			if err != nil {
				yield(nil, err)
				return
			}
			if m == nil || !yield(m, nil) {
				return
			}
			seq = m.Sequence
		}
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

// broughtCall returns the call by which a message of the queue agents starts a run, without its arguments when they are
// not in the message.
func broughtCall(m *jetstream.RawStreamMsg) (*schema.Call, bool) {
	if ref, isRef := schema.ParseReference(m.Data); isRef {
		return &schema.Call{Run: ref.Run, Turn: ref.Turn, Index: ref.Index}, schema.ValidID(ref.Run)
	}
	call, err := schema.DecodeCall(m.Data)
	return call, err == nil // else a wake-up, of a run that is open, or a stranger's
}
