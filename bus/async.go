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
	sent time.Time
}

// listenAcks starts to hear the answers.
func (b *Bus) listenAcks() error {
	b.acks.inbox = nats.NewInbox() + "."
	b.acks.open = map[uint64]openAck{}
	_, err := b.nc.Subscribe(b.acks.inbox+"*", b.hearAck)
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
	a.open[id] = openAck{done: done, sent: time.Now()}
	a.mu.Unlock()
	m.Reply = a.inbox + strconv.FormatUint(id, 36)
	if err := b.nc.PublishMsg(m); err != nil {
		if _, open := a.take(id); !open {
			return nil // it was given up in the meantime, and done called
		}
		return fmt.Errorf("publish %s: %w", m.Subject, err)
	}
	return nil
}

func (a *acks) take(id uint64) (openAck, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o, ok := a.open[id]
	delete(a.open, id)
	return o, ok
}

// takeUntil takes those that were sent at a time or before.
func (a *acks) takeUntil(at time.Time) (list []openAck) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, o := range a.open {
		if !o.sent.After(at) {
			list = append(list, o)
			delete(a.open, id)
		}
	}
	return list
}

func (b *Bus) hearAck(m *nats.Msg) {
	id, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, b.acks.inbox), 36, 64)
	if err != nil {
		return
	}
	o, ok := b.acks.take(id)
	switch {
	case !ok: // it came after it was given up
		b.contact.answered()
	case len(m.Data) == 0 && m.Header.Get("Status") == "503":
		b.unanswered(o.sent)
		o.done(0, nats.ErrNoResponders)
	default:
		b.contact.answered()
		o.done(parsePubAck(m.Data))
	}
}

// giveUpAcks ends the publishes that were sent at a time or before and not answered.
func (b *Bus) giveUpAcks(until time.Time) {
	for _, o := range b.acks.takeUntil(until) {
		b.unanswered(o.sent)
		o.done(0, nats.ErrTimeout)
	}
}

// expireAcks gives up what is not answered, a publish and then the server, until ctx ends; then all that is open.
func (b *Bus) expireAcks(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			b.giveUpAcks(time.Now())
			return
		case now := <-tick.C:
			b.giveUpAcks(now.Add(-publishTimeout))
			b.seekContact(now)
		}
	}
}
