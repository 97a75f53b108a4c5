package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	clockSamples = 5
	clockEvery   = 30 * time.Second
)

// clock follows the clock of the work stream's leader. Deadlines are written and read on it, so that the clocks of
// orchestrators and workers need not agree.
type clock struct {
	offset atomic.Int64 // nanoseconds to add to the local clock
	spread atomic.Int64 // uncertainty: half of the best round trip, nanoseconds
}

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// sync asks the leader for its time and keeps the sample with the shortest round trip.
func (c *clock) sync(ctx context.Context, b *Bus) error {
	best := time.Duration(-1)
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
			best = trip
			c.offset.Store(int64(ts.Sub(start.Add(trip / 2))))
			c.spread.Store(int64(trip / 2))
		}
	}
	if best < 0 {
		return fmt.Errorf("read the server's clock: %w", lastErr)
	}
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
		}
		if err := c.sync(ctx, b); err != nil && ctx.Err() == nil {
			b.log.Warn("server clock", "error", err)
		}
	}
}
