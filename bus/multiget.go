package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/schema"
)

// errTooMany: the filters match more than the server answers at once, 1,024 subjects or its limit of pending bytes.
var errTooMany = errors.New("too many facts for one request")

// getPending is how many messages of an answer may wait to be read: one answer is never longer.
const getPending = 1024 + 1

// multiGet reads the newest message of each subject that the filters match, in stored order, from whichever replica
// answers: what it finds is there, what it does not find may be there all the same. (The client library's own form
// allocates half a megabyte for each request.)
func (b *Bus) multiGet(ctx context.Context, filters []string) ([]schema.Fact, error) {
	body, err := json.Marshal(map[string][]string{"multi_last": filters})
	if err != nil {
		return nil, err
	}
	msgs := make(chan *nats.Msg, getPending)
	inbox := nats.NewInbox()
	sub, err := b.nc.ChanSubscribe(inbox, msgs)
	if err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	if err := b.nc.PublishRequest("$JS.API.DIRECT.GET."+b.names.runs(), inbox, body); err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	var facts []schema.Fact
	pending := "0"
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("read facts: %w", ctx.Err())
		case m := <-msgs:
			switch status := m.Header.Get("Status"); status {
			case "":
				pending = m.Header.Get("Nats-Num-Pending")
				facts = b.appendFact(facts, m)
			case "204", "404": // the end; nothing
				if pending != "0" {
					return nil, errTooMany
				}
				return facts, nil
			case "413":
				return nil, errTooMany
			default:
				return nil, fmt.Errorf("read facts: the server answers %s %s", status, m.Header.Get("Description"))
			}
		}
	}
}

// appendFact adds the fact that a stored message holds. What strangers have put among the facts is left out.
func (b *Bus) appendFact(facts []schema.Fact, m *nats.Msg) []schema.Fact {
	subject := m.Header.Get("Nats-Subject")
	seq, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
	at, timeErr := time.Parse(time.RFC3339Nano, m.Header.Get("Nats-Time-Stamp"))
	f, factErr := b.fact(subject, "run", m.Data, seq, at)
	if err := errors.Join(err, timeErr, factErr); err != nil {
		b.log.Warn("stranger among the facts", "subject", subject, "error", err)
		return facts
	}
	return append(facts, f)
}
