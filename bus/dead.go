package bus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/schema"
)

// Errors of dead letters.
var (
	// ErrNoLetter: there is no dead letter with the number.
	ErrNoLetter = errors.New("there is no such dead letter")
	// ErrNoRetry: the letter does not hold a call that could be made again.
	ErrNoRetry = errors.New("it cannot be tried again")
)

// BuriedCall is a dead letter as it is stored.
type BuriedCall struct {
	DeadLetter
	ID   uint64       // sequence in the stream of dead letters
	At   time.Time    // when it was stored
	Call *schema.Call // nil when the letter holds no call that can be read, or only the beginning of one, or, in a list, a reference to one
}

// DeadLetters returns the dead letters, newest first, while they are asked for: at most 64 are in memory at once. What
// strangers have put there has no reason. After an error nothing follows.
func (b *Bus) DeadLetters(ctx context.Context) iter.Seq2[BuriedCall, error] {
	return func(yield func(BuriedCall, error) bool) {
		for group, err := range b.backwards(ctx, b.names.dead(), b.names.deadSubject("*")) {
			if err != nil {
				yield(BuriedCall{}, fmt.Errorf("list dead letters: %w", err))
				return
			}
			for _, m := range group {
				if !yield(b.buried(m), nil) {
					return
				}
			}
		}
	}
}

// buried reads a letter. The subject decides whose it is.
func (b *Bus) buried(m stored) BuriedCall {
	l := BuriedCall{ID: m.seq, At: m.at}
	if err := schema.Decode(m.data, &l.DeadLetter); err != nil {
		l.DeadLetter = DeadLetter{Data: m.data}
	}
	l.Queue = m.subject[len(b.names.deadSubject("")):]
	if l.Size == 0 {
		l.Call, _ = schema.DecodeCall(l.Data) // unreadable is often why it is here
	}
	return l
}

// DeadLetter returns one dead letter; ErrNoLetter: there is none with that number.
func (b *Bus) DeadLetter(ctx context.Context, id uint64) (BuriedCall, error) {
	s, err := b.deadStream(ctx)
	if err != nil {
		return BuriedCall{}, err
	}
	m, err := s.GetMsg(ctx, id)
	if err != nil {
		return BuriedCall{}, letterError("read", id, err)
	}
	l := b.buried(stored{subject: m.Subject, seq: m.Sequence, at: m.Time, data: m.Data})
	if ref, ok := schema.ParseReference(l.Data); ok {
		l.Call, err = b.calledBy(ctx, l.Queue, ref)
		if err != nil && !errors.Is(err, ErrNoBlob) && !errors.Is(err, schema.ErrPayload) {
			return BuriedCall{}, letterError("read", id, err)
		}
	}
	return l, nil
}

// DropDeadLetter removes one dead letter; ErrNoLetter: there is none with that number.
func (b *Bus) DropDeadLetter(ctx context.Context, id uint64) error {
	s, err := b.deadStream(ctx)
	if err != nil {
		return err
	}
	if err = s.DeleteMsg(ctx, id); err == nil {
		return nil
	}
	// The client library hides why: the letter itself tells.
	if _, lookErr := s.GetMsg(ctx, id); lookErr != nil {
		err = lookErr
	}
	return letterError("drop", id, err)
}

func (b *Bus) deadStream(ctx context.Context) (jetstream.Stream, error) {
	s, err := b.js.Stream(ctx, b.names.dead())
	if err != nil {
		return nil, fmt.Errorf("look at stream %s: %w", b.names.dead(), err)
	}
	return s, nil
}

func letterError(what string, id uint64, err error) error {
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		err = ErrNoLetter
	}
	return fmt.Errorf("%s dead letter %s: %w", what, strconv.FormatUint(id, 10), err)
}

// Retry makes the call of a dead letter again, as a new call on a run of its own: on behalf of the same principal and
// with the same arguments and bound values. The recorded result of the old call stays, and so does the letter.
// ErrNoRetry says why there is no such call to make. within is described at Dispatch.
func (b *Bus) Retry(ctx context.Context, l BuriedCall, within time.Duration) (schema.Result, error) {
	if err := l.retriable(); err != nil {
		return schema.Result{}, fmt.Errorf("retry dead letter %d: %w", l.ID, err)
	}
	call := *l.Call
	call.Run, call.Turn, call.Index, call.Label = schema.NewID(), 1, 0, "retry"
	return b.invoke(ctx, &call, l.Queue, within)
}

func (l *BuriedCall) retriable() error {
	switch {
	case l.Size > 0:
		return fmt.Errorf("%w: the letter keeps only the first %d of %d bytes of the call", ErrNoRetry, len(l.Data), l.Size)
	case l.Call == nil:
		return fmt.Errorf("%w: it holds no call that can be read", ErrNoRetry)
	case l.Queue == schema.QueueAgents:
		return fmt.Errorf("%w: it is a run of an agent, not a call of a tool", ErrNoRetry)
	}
	if err := schema.CheckQueue(l.Queue); err != nil {
		return fmt.Errorf("%w: %w", ErrNoRetry, err)
	}
	return nil
}
