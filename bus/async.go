package bus

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// acks matches the stream's answers to publishes that nobody waits for: on the way of a call both its message and its
// result are published this way, so that no goroutine is woken by an answer that only says yes.
type acks struct {
	inbox string // with the trailing dot

	mu   sync.Mutex
	last uint64
	open map[uint64]openAck
}

type openAck struct {
	done func(seq uint64, err error)
	late time.Time
}

// listenAcks starts to hear the answers.
func (b *Bus) listenAcks() error {
	b.acks.inbox = nats.NewInbox() + "."
	b.acks.open = map[uint64]openAck{}
	_, err := b.nc.Subscribe(b.acks.inbox+"*", b.acks.hear)
	return err
}

// publishAsync sends m to the stream that captures its subject. done is called once with the stream's word, or with an
// error when there is none; it runs on a goroutine that it must not block. An error that publishAsync returns says that
// m was not sent, and done is not called.
func (b *Bus) publishAsync(m *nats.Msg, done func(seq uint64, err error)) error {
	if limit := b.nc.MaxPayload(); int64(m.Size()) > limit {
		return fmt.Errorf("publish %s: %d bytes, limit %d: %w", m.Subject, m.Size(), limit, errTooLarge)
	}
	a := &b.acks
	a.mu.Lock()
	a.last++
	id := a.last
	a.open[id] = openAck{done: done, late: time.Now().Add(publishTimeout)}
	a.mu.Unlock()
	m.Reply = a.inbox + strconv.FormatUint(id, 36)
	if err := b.nc.PublishMsg(m); err != nil {
		a.take(id)
		return fmt.Errorf("publish %s: %w", m.Subject, err)
	}
	return nil
}

func (a *acks) take(id uint64) (func(uint64, error), bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o, ok := a.open[id]
	delete(a.open, id)
	return o.done, ok
}

func (a *acks) hear(m *nats.Msg) {
	id, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, a.inbox), 36, 64)
	if err != nil {
		return
	}
	done, ok := a.take(id)
	switch {
	case !ok: // it came after it was given up
	case len(m.Data) == 0 && m.Header.Get("Status") == "503":
		done(0, nats.ErrNoResponders)
	default:
		done(parsePubAck(m.Data))
	}
}

// expire ends the publishes that were not answered in time.
func (a *acks) expire(now time.Time) {
	a.mu.Lock()
	var late []func(uint64, error)
	for id, o := range a.open {
		if now.After(o.late) {
			late = append(late, o.done)
			delete(a.open, id)
		}
	}
	a.mu.Unlock()
	for _, done := range late {
		done(0, nats.ErrTimeout)
	}
}

// expireAcks runs until ctx ends, then ends what is open.
func (b *Bus) expireAcks(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			b.acks.expire(time.Now().Add(2 * publishTimeout))
			return
		case now := <-tick.C:
			b.acks.expire(now)
		}
	}
}
