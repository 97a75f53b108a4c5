package bus

import (
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/schema"
)

// Announcement is a worker's heartbeat in the catalog, under <queue>.<instance>.
type Announcement struct {
	schema.Payload
	Slots  int    `msgpack:"slots" json:"slots"`   // calls at once
	Digest string `msgpack:"digest" json:"digest"` // of the stored ToolSet
}

// ToolSet holds the definitions of a queue's tools in the catalog, under tools.<queue>.<digest>.
type ToolSet struct {
	schema.Payload
	Tools []schema.Tool `msgpack:"tools" json:"tools"` // with the queue and the digest of each
}

// announcer keeps a worker in the catalog.
type announcer struct {
	bus   *Bus
	queue string
	slots int
	tools []byte      // encoded ToolSet
	other chan []byte // buffered 1: what is to be announced instead
	key   string      // of the heartbeat

	stop context.CancelFunc
	done chan struct{} // closed when keep has returned
}

// announce enters a worker of queue into the catalog and keeps it there until it is withdrawn. The catalog informs, it
// decides nothing: an entry that cannot be written is logged and tried again.
func (b *Bus) announce(queue string, slots int, tools []schema.Tool) *announcer {
	a := &announcer{bus: b, queue: queue, slots: slots, key: queue + "." + b.cfg.Instance, other: make(chan []byte, 1), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(b.life)
	a.stop = cancel
	a.renew(tools)
	started := b.task(func() {
		defer close(a.done)
		a.keep(ctx)
	})
	if !started {
		cancel()
		close(a.done)
	}
	return a
}

// renew announces tools instead of those before. It is called by one goroutine.
func (a *announcer) renew(tools []schema.Tool) {
	set := &ToolSet{Tools: slices.Clone(tools)}
	for i := range set.Tools {
		set.Tools[i].Queue = a.queue
		set.Tools[i] = set.Tools[i].WithDigest()
	}
	data, err := schema.Encode(set)
	if err != nil {
		a.bus.log.Error("tools not announced", "queue", a.queue, "error", err)
		return
	}
	select {
	case <-a.other: // too late for these
	default:
	}
	a.other <- data
}

func (a *announcer) keep(ctx context.Context) {
	tick := time.NewTicker(Heartbeat)
	defer tick.Stop()
	var written time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case a.tools = <-a.other:
			written = time.Time{}
		case <-tick.C:
		}
		if a.tools != nil {
			written = a.write(written)
		}
	}
}

// write writes the entries anew and returns when the definitions were last written.
func (a *announcer) write(written time.Time) time.Time {
	if time.Since(written) > ToolsTTL/4 {
		if a.put("tools."+a.queue+"."+schema.Digest(a.tools), a.tools, ToolsTTL) {
			written = time.Now()
		}
	}
	if data, err := schema.Encode(&Announcement{Slots: a.slots, Digest: schema.Digest(a.tools)}); err == nil {
		a.put(a.key, data, HeartbeatTTL)
	}
	return written
}

// put writes an entry with its life. An update through the key-value API would drop the life.
func (a *announcer) put(key string, data []byte, life time.Duration) bool {
	m := &nats.Msg{Subject: a.bus.names.catalogKey(key), Header: nats.Header{HeaderTTL: {life.String()}}, Data: data}
	if _, err := a.bus.publish(m); err != nil {
		if a.bus.life.Err() == nil {
			a.bus.log.Warn("catalog entry not written", "key", key, "error", err)
		}
		return false
	}
	return true
}

// withdraw takes the worker out of the catalog.
func (a *announcer) withdraw() {
	a.stop()
	<-a.done
	ctx, cancel := context.WithTimeout(context.Background(), publishTimeout)
	defer cancel()
	kv, err := a.bus.js.KeyValue(ctx, a.bus.names.catalog())
	if err == nil {
		err = kv.Purge(ctx, a.key, jetstream.PurgeTTL(HeartbeatTTL))
	}
	if err != nil {
		a.bus.log.Debug("catalog entry not withdrawn, it expires", "key", a.key, "error", err)
	}
}
