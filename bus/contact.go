package bus

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// contact notices that the server of this connection leads nowhere: one that is cut off from the others of its cluster
// keeps its clients, and answers their pings.
type contact struct {
	silent atomic.Int64 // when the first publish was sent that no stream answered, Unix nanoseconds; 0: the last one was
	moves  atomic.Int64 // to other servers, and still no answer
}

// maxMoves bounds how often the patience with a server doubles: when all are alike, moving helps nobody.
const maxMoves = 3

// answered notes the word of a stream on a publish, whatever it says.
func (c *contact) answered() {
	if c.silent.Load() != 0 {
		c.silent.Store(0)
	}
	if c.moves.Load() != 0 {
		c.moves.Store(0)
	}
}

// unanswered notes a publish that no stream has answered.
func (c *contact) unanswered(sent time.Time) { c.silent.CompareAndSwap(0, sent.UnixNano()) }

// late tells, once, whether no publish was answered for too long.
func (c *contact) late(now time.Time) bool {
	since := c.silent.Load()
	patience := AckWait << min(c.moves.Load(), maxMoves)
	return since != 0 && now.UnixNano()-since >= int64(patience) && c.silent.CompareAndSwap(since, 0)
}

// unanswered notes a publish that no stream has answered, though the connection looks healthy.
func (b *Bus) unanswered(sent time.Time) {
	if b.unbrokenSince(sent) {
		b.contact.unanswered(sent)
	}
}

// seekContact goes to another server of the cluster, if one is known, when no stream has answered for AckWait.
func (b *Bus) seekContact(now time.Time) {
	if len(b.nc.Servers()) < 2 || !b.nc.IsConnected() || !b.contact.late(now) {
		return
	}
	b.contact.moves.Add(1)
	b.log.Warn("no stream answers, going to another server", "from", b.nc.ConnectedUrlRedacted())
	_ = b.nc.ForceReconnect() // fails only on a closed connection
}

// hopeless tells whether trying again cannot help. A request that was under way when this process went to another server
// ends as on a closed connection.
func (b *Bus) hopeless(err error) bool {
	return errors.Is(err, errTooLarge) || errors.Is(err, nats.ErrBadSubject) ||
		errors.Is(err, nats.ErrConnectionClosed) && b.nc.IsClosed()
}
