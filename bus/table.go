package bus

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/schema"
)

// callID is a call's identity.
type callID struct {
	run         string
	turn, index int
}

func idOf(c *schema.Call) callID { return callID{c.Run, c.Turn, c.Index} }

// entry is a delivery that this process works on: in the table before begin is sent and until its result is recorded.
type entry struct {
	id       callID
	queue    string
	seq      uint64 // WORK sequence
	reply    string // where acknowledgements go
	deadline time.Time
	cancel   context.CancelCauseFunc
	held     bool        // it is in the table
	active   atomic.Bool // it runs, or its begin is on the way: what jc.own answers
}

// table holds the deliveries that a process works on, over all its queues.
type table struct {
	mu      sync.Mutex
	entries map[callID]*entry
}

// add takes e in unless the call is there already; then it returns the entry that is.
func (t *table) add(e *entry) (present *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.entries[e.id]; p != nil {
		return p
	}
	t.entries[e.id], e.held = e, true
	return nil
}

func (t *table) remove(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.entries, e.id)
}

// drop is remove for an entry that may have been given away already.
func (t *table) drop(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries[e.id] == e {
		delete(t.entries, e.id)
	}
}

// count returns how many calls of a queue are worked on.
func (t *table) count(queue string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.entries {
		if e.queue == queue {
			n++
		}
	}
	return n
}

// running tells whether the call runs here as delivered under seq.
func (t *table) running(id callID, seq uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[id]
	return e != nil && e.seq == seq && e.active.Load()
}

// cancel ends the calls of a run: the one that is named, or all.
func (t *table) cancel(run string, c *Cancel) {
	cause := &schema.Error{Type: schema.Cancelled, Message: "cancelled: " + c.Reason}
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, e := range t.entries {
		if id.run == run && (c.Turn == nil || *c.Turn == id.turn) && (c.Index == nil || *c.Index == id.index) {
			e.cancel(cause)
		}
	}
}

// inProgress says of every call before its deadline that it is being worked on.
func (t *table) inProgress(nc *nats.Conn) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.entries {
		if now.Before(e.deadline) {
			_ = nc.Publish(e.reply, ackProgress) // a broken connection is healed elsewhere; the next tick repeats
		}
	}
}

// listenWorker answers "are you running this?" and hears the hints to cancel.
func (b *Bus) listenWorker() error {
	if _, err := b.nc.Subscribe(b.names.own(b.cfg.Instance), b.answerOwn); err != nil {
		return err
	}
	_, err := b.nc.Subscribe(b.names.cancel("*"), b.hearCancel)
	return err
}

func (b *Bus) answerOwn(m *nats.Msg) {
	var q OwnQuery
	if schema.Decode(m.Data, &q) != nil || m.Reply == "" {
		return // not a question; silence is its answer
	}
	running := q.Turn == 0 && b.owns(q.Run, q.Seq) || q.Turn > 0 && b.table.running(callID{q.Run, q.Turn, q.Index}, q.Seq)
	b.send(m.Reply, &OwnReply{Running: running})
}

func (b *Bus) hearCancel(m *nats.Msg) {
	run, rest, _ := b.names.cutRun(m.Subject, "cancel")
	var c Cancel
	if rest != "" || schema.Decode(m.Data, &c) != nil {
		return
	}
	b.table.cancel(run, &c)
}

// keepInProgress runs until ctx ends, apart from whatever the tools do.
func (b *Bus) keepInProgress(ctx context.Context) {
	tick := time.NewTicker(InProgress)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			b.table.inProgress(b.nc)
		}
	}
}
