package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/schema"
)

// maxAtOnce bounds the calls of a queue that a limit lets run at once.
const maxAtOnce = 1 << 20

func checkAtOnce(n int) error {
	if n < 0 || n > maxAtOnce {
		return fmt.Errorf("limit %d: want 1 to %d calls at once, or 0 for no limit", n, maxAtOnce)
	}
	return nil
}

// LimitError says that workers of one queue differ about how many of its calls may run at once.
type LimitError struct {
	Queue string
	Has   int // what the queue has; 0: no limit
	Want  int // what the worker says
}

func (e *LimitError) Error() string {
	has := "no limit on its calls (max_ack_pending is -1"
	if e.Has > 0 {
		has = fmt.Sprintf("the limit %d on its calls (max_ack_pending is %d", e.Has, e.Has)
	}
	return fmt.Sprintf("queue %s has %s, want %d); give all of its workers one limit, or change that of the queue (`toolworker limit %s %d`)",
		e.Queue, has, e.Want, e.Queue, e.Want)
}

// agree returns a LimitError where a worker names another limit than its queue has. One that names none takes what is there.
func agree(queue string, has, want int) error {
	if want == 0 || want == has {
		return nil
	}
	return &LimitError{Queue: queue, Has: has, Want: want}
}

// LimitOf returns how many calls of a queue its workers run at once, all of them together; 0: any number. known is false for a queue
// that nobody has served yet.
func (b *Bus) LimitOf(ctx context.Context, queue string) (atOnce int, known bool, err error) {
	c, err := b.js.Consumer(ctx, b.names.work(), queue)
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("limit of queue %s: %w", queue, err)
	}
	return max(0, c.CachedInfo().Config.MaxAckPending), true, nil
}

// Limit changes how many calls of a queue run at once over all of its workers; 0: any number. It holds from now on: workers that
// run take it, and calls that run go on, even if they are more. A queue that nobody has served yet gets it, too.
func (b *Bus) Limit(ctx context.Context, queue string, atOnce int) error {
	if err := b.limit(ctx, queue, atOnce); err != nil {
		return fmt.Errorf("limit queue %s: %w", queue, err)
	}
	return nil
}

func (b *Bus) limit(ctx context.Context, queue string, atOnce int) error {
	switch {
	case schema.CheckQueue(queue) != nil:
		return schema.CheckQueue(queue)
	case queue == schema.QueueAgents:
		return errors.New("runs that wait for one another must not run out of places; bound the slots of its orchestrators")
	case checkAtOnce(atOnce) != nil:
		return checkAtOnce(atOnce)
	}
	if _, err := b.ensureConsumer(ctx, queue, atOnce); err != nil {
		return err
	}
	c, err := b.js.Consumer(ctx, b.names.work(), queue)
	if err != nil {
		return err
	}
	cfg := c.CachedInfo().Config
	if max(0, cfg.MaxAckPending) == atOnce {
		return nil
	}
	if cfg.MaxAckPending = atOnce; atOnce == 0 {
		cfg.MaxAckPending = -1
	}
	_, err = b.js.UpdateConsumer(ctx, b.names.work(), cfg)
	return err
}
