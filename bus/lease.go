package bus

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
)

// expireEvery is how often closed runs are looked through for those that can go.
const expireEvery = time.Hour

// lease tells whether this process is the one of all that do something under a name within a time of whole seconds: the
// first to ask is, until the time is over. It is not given back.
func (b *Bus) lease(name string, within time.Duration) (bool, error) {
	h := nats.Header{headerExpectSeq: zeroSeq, HeaderTTL: {within.String()}}
	_, err := b.publish(&nats.Msg{Subject: b.names.timerLease(name), Header: h, Data: []byte(b.cfg.Instance)})
	if apiCode(err) == codeWrongLastSequence {
		return false, nil
	}
	return err == nil, err
}

// expireRuns has the runs archived and deleted that were closed Retention ago, once an hour by one of the orchestrators,
// until ctx ends. What one of them leaves undone is done an hour later.
func (b *Bus) expireRuns(ctx context.Context) {
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	for {
		mine, err := b.lease("expire", expireEvery-time.Minute)
		if mine {
			var n int
			if n, err = b.Expire(ctx, b.Now().Add(-Retention)); n > 0 {
				b.log.Info("closed runs archived", "runs", n)
			}
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, nats.ErrConnectionClosed) {
			b.log.Warn("closed runs not archived, tried again in an hour", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
