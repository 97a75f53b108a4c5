package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	clockSamples = 5
	clockEvery   = 30 * time.Second
)

// clock follows the clock of the work stream's leader. Deadlines are written and read on it, so that the clocks of
// orchestrators and workers need not agree. It is read again every clockEvery, after a reconnect and when the stream
// has a new leader.
type clock struct {
	offset atomic.Int64  // nanoseconds to add to the local clock; the error is up to half of the best round trip
	moved  chan struct{} // buffered 1: somebody else's clock counts now
}

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// ask has the clock read again soon.
func (c *clock) ask() {
	select {
	case c.moved <- struct{}{}:
	default:
	}
}

// sync asks the leader for its time and takes the sample with the shortest round trip.
func (c *clock) sync(ctx context.Context, b *Bus) error {
	best, offset := time.Duration(-1), time.Duration(0)
	var lastErr error
	for range clockSamples {
		start := time.Now()
		ts, err := b.serverTime(ctx)
		if err != nil {
			lastErr = err
			continue
		}
		trip := time.Since(start)
		if best < 0 || trip < best {
			best, offset = trip, ts.Sub(start.Add(trip/2))
		}
	}
	if best < 0 {
		return fmt.Errorf("read the server's clock: %w", lastErr)
	}
	c.offset.Store(int64(offset))
	return nil
}

// serverTime asks once. A busy server may leave one question unanswered, so each has a bound of its own.
func (b *Bus) serverTime(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	reply, err := b.nc.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+b.names.work(), nil)
	if err != nil {
		return time.Time{}, err
	}
	var info struct {
		TS time.Time `json:"ts"`
	}
	if err := json.Unmarshal(reply.Data, &info); err != nil || info.TS.IsZero() {
		return time.Time{}, fmt.Errorf("stream info without a time: %.200s", reply.Data)
	}
	return info.TS, nil
}

// keep synchronises again until ctx ends. A failed attempt keeps the last offset.
func (c *clock) keep(ctx context.Context, b *Bus) {
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.moved:
		}
		if err := c.sync(ctx, b); err != nil && ctx.Err() == nil {
			b.log.Warn("server clock", "error", err)
		}
	}
}

// listenLeader hears when the work stream gets another leader.
func (b *Bus) listenLeader() error {
	_, err := b.nc.Subscribe("$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED."+b.names.work(), func(*nats.Msg) { b.clock.ask() })
	return err
}
