package bus

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Acknowledgements of JetStream.
var (
	ackDone     = []byte("+ACK")
	ackProgress = []byte("+WPI")
	ackTerm     = []byte("+TERM")
)

const ackPrefix = "$JS.ACK." // of where a delivery is acknowledged

func nakAfter(d time.Duration) []byte {
	if d <= 0 {
		return []byte("-NAK")
	}
	return fmt.Appendf(nil, `-NAK {"delay": %d}`, d.Nanoseconds())
}

// ackDelay is how long acknowledgements wait for one another. Nobody waits for them, and each that travels alone costs
// the server a wake-up and, when it empties the stream, a file.
const ackDelay = 3 * time.Millisecond

// ackSoon acknowledges a delivery together with others.
func (b *Bus) ackSoon(reply string) {
	b.done.mu.Lock()
	defer b.done.mu.Unlock()
	b.done.replies = append(b.done.replies, reply)
	if len(b.done.replies) == 1 {
		time.AfterFunc(ackDelay, b.sendAcks)
	}
}

// sendAcks sends what ackSoon has gathered.
func (b *Bus) sendAcks() {
	b.done.mu.Lock()
	replies := b.done.replies
	b.done.replies = nil
	b.done.mu.Unlock()
	for _, reply := range replies {
		if err := b.nc.Publish(reply, ackDone); err != nil {
			b.log.Info("acknowledgements not sent, the calls come again", "calls", len(replies), "error", err)
			return
		}
	}
}

// flushAcks returns when every acknowledgement has reached the server.
func (b *Bus) flushAcks() error {
	b.sendAcks()
	if err := b.nc.FlushTimeout(publishTimeout); err != nil {
		return fmt.Errorf("drain: acknowledgements may not have arrived: %w", err)
	}
	return nil
}

// origin is what a delivered message's ack subject says about it.
type origin struct {
	seq      uint64 // stream sequence
	order    uint64 // which of its consumer's deliveries it is, from 1
	delivery uint64 // from 1
	stored   time.Time
}

// parseOrigin reads $JS.ACK.<stream>.<consumer>.<delivered>.<sseq>.<cseq>.<time>.<pending>, or the longer form with
// domain and account in front of the stream.
func parseOrigin(m *nats.Msg) (origin, error) {
	t := strings.Split(m.Reply, ".")
	if len(t) >= 11 {
		t = t[2:] // domain and account
	}
	if len(t) < 9 || !strings.HasPrefix(m.Reply, ackPrefix) {
		return origin{}, fmt.Errorf("reply subject %q is not a delivery's", m.Reply)
	}
	delivery, err1 := strconv.ParseUint(t[4], 10, 64)
	seq, err2 := strconv.ParseUint(t[5], 10, 64)
	order, err3 := strconv.ParseUint(t[6], 10, 64)
	ns, err4 := strconv.ParseInt(t[7], 10, 64)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return origin{}, fmt.Errorf("reply subject %q: %w", m.Reply, err)
	}
	return origin{seq: seq, order: order, delivery: delivery, stored: time.Unix(0, ns)}, nil
}
