package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

const (
	watermark = 0.9         // of what the stream of runs may hold: above it no run is opened
	roomEvery = time.Second // how often it is looked at, at most
)

// room keeps new runs out while the stream of runs is nearly full, so that those under way have room for their facts: a
// full stream would refuse their results too. What bounds it are the limits that an operator set on the stream (messages,
// bytes) and on the storage of its account; without any, nothing is known and nothing refused.
type room struct {
	mu   sync.Mutex
	at   time.Time // when it was last looked at
	full error
}

// checkRoom returns schema.ErrNoRoom when no run may be opened now. That nobody says how full the stream is keeps no run
// out: writing its first fact finds out.
func (b *Bus) checkRoom(ctx context.Context) error {
	r := &b.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.IsZero() && time.Since(r.at) < roomEvery {
		return r.full
	}
	u, err := b.usage(ctx)
	if err != nil && ctx.Err() != nil {
		return r.full // of who does not wait for an answer the others learn nothing
	}
	r.at, r.full = time.Now(), nil
	if err != nil {
		b.log.Debug("how full the stream of runs is was not told", "error", err)
		return nil
	}
	r.full = u.full()
	return r.full
}

// roomFor is checkRoom for a run that may be open already, which takes no room any more.
func (b *Bus) roomFor(ctx context.Context, run string) error {
	full := b.checkRoom(ctx)
	if full == nil {
		return nil
	}
	open, err := b.lookFact(ctx, run, schema.OpenKey())
	if err == nil && open == nil {
		err = full
	}
	return err
}

// usage is what is in the stream of runs and in its account, and the limits; a limit that is not positive is none.
type usage struct {
	Config struct {
		MaxMsgs  int64 `json:"max_msgs"`
		MaxBytes int64 `json:"max_bytes"`
	} `json:"config"`
	State struct {
		Msgs  int64 `json:"messages"`
		Bytes int64 `json:"bytes"`
	} `json:"state"`
	account
}

type account struct {
	Storage int64 `json:"storage"`
	Limits  struct {
		MaxStorage int64 `json:"max_storage"`
	} `json:"limits"`
}

// full returns an error that says which limit is nearly reached.
func (u *usage) full() error {
	for _, l := range []struct {
		of, unit  string
		used, max int64
	}{
		{"the stream of runs", "messages", u.State.Msgs, u.Config.MaxMsgs},
		{"the stream of runs", "bytes", u.State.Bytes, u.Config.MaxBytes},
		{"the account's storage", "bytes", u.Storage, u.Limits.MaxStorage},
	} {
		if l.max > 0 && float64(l.used) >= watermark*float64(l.max) {
			return fmt.Errorf("%w: %d of %d %s of %s are taken; raise the limit, or wait until closed runs have expired", schema.ErrNoRoom, l.used, l.max, l.unit, l.of)
		}
	}
	return nil
}

func (b *Bus) usage(ctx context.Context) (*usage, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	u := new(usage)
	if err := b.ask(ctx, "$JS.API.STREAM.INFO."+b.names.runs(), u); err != nil {
		return nil, err
	}
	return u, b.ask(ctx, "$JS.API.INFO", &u.account)
}

// ask reads an answer of JetStream's API into v.
func (b *Bus) ask(ctx context.Context, subject string, v any) error {
	reply, err := b.nc.RequestWithContext(ctx, subject, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", subject, err)
	}
	var failed struct {
		Error *apiError `json:"error"`
	}
	if err := json.Unmarshal(reply.Data, &failed); err != nil {
		return fmt.Errorf("%s: answer %.100q: %w", subject, reply.Data, err)
	}
	if failed.Error != nil {
		return fmt.Errorf("%s: %w", subject, failed.Error)
	}
	return json.Unmarshal(reply.Data, v)
}
