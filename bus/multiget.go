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

const (
	pageSize  = 1024     // messages of one answer at most
	pageBytes = 16 << 20 // of the answer that is one page of many: less than a server lets wait for one client
)

// multiGet reads the newest message of each subject that the filters match, in stored order, from whichever replica
// answers: what it finds is there, what it does not find may be there all the same.
func (b *Bus) multiGet(ctx context.Context, filters []string) (facts []schema.Fact, err error) {
	p, err := b.directGet(ctx, b.names.runs(), map[string]any{"multi_last": filters}, func(m *nats.Msg) { facts = b.appendFact(facts, m) })
	if err == nil && p.more {
		err = errTooMany
	}
	return facts, err
}

// pages reads all messages that one filter matches, in stored order, page by page and however many they are. Pages of
// several replicas fit together: each has a beginning of the stream without a gap.
func (b *Bus) pages(ctx context.Context, filter string) (facts []schema.Fact, err error) {
	for from := uint64(1); ; {
		p, err := b.directGet(ctx, b.names.runs(), following(filter, from, pageSize), func(m *nats.Msg) { facts = b.appendFact(facts, m) })
		if err != nil {
			return nil, err
		}
		if !p.more {
			return facts, nil
		}
		from = max(from, p.last) + 1
	}
}

// following asks for the messages that filter matches from a sequence on, count at most.
func following(filter string, from uint64, count int) map[string]any {
	return map[string]any{"next_by_subj": filter, "seq": from, "batch": count, "max_bytes": pageBytes}
}

// page is the answer to a direct get.
type page struct {
	last uint64 // sequence of its last message
	more bool   // messages match that are not in it
}

// directGet asks for several stored messages and hands each to take. An answer that stays out, because a connection
// broke or a replica went away, ends it after publishTimeout of silence. (The client library's own form allocates half a
// megabyte for each request.)
func (b *Bus) directGet(ctx context.Context, stream string, request map[string]any, take func(*nats.Msg)) (p page, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return p, err
	}
	msgs := make(chan *nats.Msg, pageSize+1)
	inbox := nats.NewInbox()
	sub, err := b.nc.ChanSubscribe(inbox, msgs)
	if err != nil {
		return p, fmt.Errorf("read facts: %w", err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	if err := b.nc.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, body); err != nil {
		return p, fmt.Errorf("read facts: %w", err)
	}
	silence := time.NewTimer(publishTimeout)
	defer silence.Stop()
	for {
		select {
		case <-ctx.Done():
			return p, fmt.Errorf("read facts: %w", ctx.Err())
		case <-silence.C:
			return p, fmt.Errorf("read facts: %w", nats.ErrTimeout)
		case m := <-msgs:
			silence.Reset(publishTimeout)
			if seq := stamp(m, headerSequence); seq != "" { // a stored message, whatever status it may bring
				p.more = stamp(m, "Nats-Num-Pending") != "0"
				p.last, _ = strconv.ParseUint(seq, 10, 64)
				take(m)
				continue
			}
			switch status := m.Header.Get("Status"); status {
			case "204", "404": // the end; nothing
				return p, nil
			case "413":
				return p, errTooMany
			default:
				return p, fmt.Errorf("read facts: the server answers %s %s", status, m.Header.Get("Description"))
			}
		}
	}
}

// stamp returns what the server says of a message that it hands out of a stream. It writes that behind the headers which
// the message was stored with, and those may have the same name.
func stamp(m *nats.Msg, header string) string {
	values := m.Header[header]
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// appendFact adds the fact that a stored message holds. What strangers have put among the facts is left out.
func (b *Bus) appendFact(facts []schema.Fact, m *nats.Msg) []schema.Fact {
	subject := stamp(m, "Nats-Subject")
	seq, err := strconv.ParseUint(stamp(m, headerSequence), 10, 64)
	at, timeErr := time.Parse(time.RFC3339Nano, stamp(m, "Nats-Time-Stamp"))
	f, factErr := b.fact(subject, "run", m.Data, seq, at)
	if err := errors.Join(err, timeErr, factErr); err != nil {
		b.log.Warn("stranger among the facts", "subject", subject, "error", err)
		return facts
	}
	return append(facts, f)
}
