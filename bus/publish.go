package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// Error codes of JetStream that the protocol names. Only the first decides; whatever else comes means to look.
const (
	codeWrongLastSequence  = 10071 // the subject named in the header has a message
	codeStoreFailed        = 10077 // own subject taken, or the stream is full
	codeWrongLastUncertain = 10164 // a competing write is under way
)

// errTooLarge is returned before anything is sent: a message over the server's limit costs the whole connection.
var errTooLarge = errors.New("message is larger than the server takes")

// apiError is a publish that the stream refused.
type apiError struct {
	Code        int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string { return fmt.Sprintf("%s (%d)", e.Description, e.Code) }

// publish sends m to the stream that captures its subject and waits for the stream's word. It returns the sequence,
// an *apiError when the stream refused, or another error when nothing is known.
func (b *Bus) publish(m *nats.Msg) (uint64, error) {
	if limit := b.nc.MaxPayload(); int64(m.Size()) > limit {
		return 0, fmt.Errorf("publish %s: %d bytes, limit %d: %w", m.Subject, m.Size(), limit, errTooLarge)
	}
	sent := time.Now()
	reply, err := b.nc.RequestMsg(m, publishTimeout)
	if err != nil {
		b.unanswered(sent)
		return 0, fmt.Errorf("publish %s: %w", m.Subject, err)
	}
	b.contact.answered()
	return parsePubAck(reply.Data)
}

func parsePubAck(data []byte) (uint64, error) {
	if !bytes.Contains(data, []byte(`"error"`)) {
		if _, rest, ok := bytes.Cut(data, []byte(`"seq":`)); ok {
			end := 0
			for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
				end++
			}
			if seq, err := strconv.ParseUint(string(rest[:end]), 10, 64); err == nil {
				return seq, nil
			}
		}
	}
	var ack struct {
		Error *apiError `json:"error"`
		Seq   uint64    `json:"seq"`
	}
	if err := json.Unmarshal(data, &ack); err != nil {
		return 0, fmt.Errorf("publish: answer %.100q: %w", data, err)
	}
	if ack.Error != nil {
		return 0, ack.Error
	}
	return ack.Seq, nil
}

// apiCode returns the stream's error code, 0 when the stream did not answer.
func apiCode(err error) int {
	var e *apiError
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// backoff waits before attempt n (from 1) is repeated. It returns early, with ctx's error, when ctx ends.
func backoff(ctx context.Context, n int) error {
	d := min(backoffFirst<<min(n-1, 10), backoffMax)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
