package bus

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/schema"
)

// Catalog is what this process knows of the workers that are alive and their tools. It follows the catalog's bucket
// through reconnects and restarts. It is safe for concurrent use.
type Catalog struct {
	bus *Bus

	mu      sync.Mutex
	workers map[string]WorkerInfo    // by queue.instance
	lost    map[string]WorkerInfo    // by queue.instance: whose heartbeats ended a short while ago
	gone    map[string]time.Time     // by queue/tool: when a worker left that offered it
	reading time.Time                // since when the bucket is read without a break; zero: it is not
	sets    map[string][]schema.Tool // by queue.digest
	version uint64                   // grows with every change of what is offered
	last    uint64                   // revision read last
	change  chan struct{}            // closed and replaced at every change
}

// WorkerInfo is a worker that is alive.
type WorkerInfo struct {
	Queue    string
	Instance string
	Slots    int
	Tools    []schema.Tool
	digest   string
	seen     time.Time
}

// Catalog returns the bus's view of the workers, which is followed from the first call on.
func (b *Bus) Catalog() *Catalog {
	b.catalog.once.Do(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.catalog.Catalog = &Catalog{
			bus: b, workers: map[string]WorkerInfo{}, lost: map[string]WorkerInfo{}, gone: map[string]time.Time{}, sets: map[string][]schema.Tool{}, change: make(chan struct{}),
		}
		b.task(func() { b.catalog.follow(b.life) })
		b.task(func() { b.catalog.expireEach(b.life) })
	})
	return b.catalog.Catalog
}

// served tells whether a live worker of queue has the tool. A bus that does not follow the catalog says yes.
func (b *Bus) served(queue, tool string) bool {
	b.mu.Lock()
	c := b.catalog.Catalog
	b.mu.Unlock()
	if c == nil {
		return true
	}
	return slices.ContainsFunc(c.Workers(), func(w WorkerInfo) bool {
		return w.Queue == queue && slices.ContainsFunc(w.Tools, func(t schema.Tool) bool { return t.Name == tool })
	})
}

// Workers returns the workers that are alive, by queue and instance.
func (c *Catalog) Workers() []WorkerInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sorted(c.workers)
}

// sorted wants c.mu held.
func (c *Catalog) sorted(workers map[string]WorkerInfo) []WorkerInfo {
	ws := slices.SortedFunc(maps.Values(workers), func(a, b WorkerInfo) int {
		return strings.Compare(a.Queue+"."+a.Instance, b.Queue+"."+b.Instance)
	})
	for i := range ws {
		ws[i].Tools = c.sets[ws[i].Queue+"."+ws[i].digest]
	}
	return ws
}

// Tools returns the tools that live workers offer, by queue and name. Where workers of one queue differ about a tool,
// the one that started last is believed.
func (c *Catalog) Tools() []schema.Tool { return offered(c.Workers()) }

// lately returns Tools, and those of workers that are missed for less than lostFor: when the server was away, nobody has
// a heartbeat for a moment, and a tool that everybody needs again at once is not unknown.
func (c *Catalog) lately() []schema.Tool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return offered(append(c.sorted(c.lost), c.sorted(c.workers)...))
}

func offered(workers []WorkerInfo) []schema.Tool {
	byName := map[string]schema.Tool{}
	for _, w := range workers {
		for _, t := range w.Tools {
			byName[t.Queue+"/"+t.Name] = t
		}
	}
	names := slices.Sorted(maps.Keys(byName))
	tools := make([]schema.Tool, len(names))
	for i, n := range names {
		tools[i] = byName[n]
	}
	return tools
}

// Changes returns the current version of what is offered and a channel that is closed when it is outdated.
func (c *Catalog) Changes() (uint64, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version, c.change
}

// follow reads the bucket until ctx ends. Whatever breaks, it goes on from the last revision it has read.
func (c *Catalog) follow(ctx context.Context) {
	for attempt := 1; ctx.Err() == nil; attempt++ {
		err := c.read(ctx)
		c.bus.log.Debug("catalog reader starts anew", "error", err)
		_ = backoff(ctx, attempt) // an ended ctx ends the loop
	}
}

// read applies entries until something breaks.
func (c *Catalog) read(ctx context.Context) error {
	r, err := c.bus.listen(ctx)
	if err != nil {
		return err
	}
	defer r.end()
	if err := c.consumer(ctx, r.sub.Subject); err != nil {
		return err
	}
	c.readingSince(time.Now())
	defer c.readingSince(time.Time{})
	for order := uint64(1); ; {
		m, err := r.next()
		if err != nil {
			return err
		}
		o, err := parseOrigin(m)
		if err != nil {
			continue // a heartbeat
		}
		if o.order != order {
			return errSkipped
		}
		c.apply(m, o.seq)
		order++
	}
}

func (c *Catalog) readingSince(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = t
}

// catalogIdle is how long the server keeps the consumer of a reader that is gone: processes that come and go leave one
// each, and a stream takes 1,000.
const catalogIdle = 30 * time.Second

// consumer has the entries sent to subject: those after the last revision, or everything when there is none or the bucket
// was made anew.
func (c *Catalog) consumer(ctx context.Context, subject string) error {
	s, err := c.bus.js.Stream(ctx, c.bus.names.catalogStream())
	if err != nil {
		return err
	}
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	cfg := jetstream.ConsumerConfig{
		DeliverSubject: subject, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, AckPolicy: jetstream.AckNonePolicy,
		FilterSubject: c.bus.names.catalogKey(">"), IdleHeartbeat: readerHeartbeat, InactiveThreshold: catalogIdle, MemoryStorage: true, Replicas: 1,
	}
	if last > 0 && s.CachedInfo().State.LastSeq >= last {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, last+1
	}
	_, err = s.CreatePushConsumer(ctx, cfg)
	return err
}

// apply takes the entry m, revision seq of the bucket.
func (c *Catalog) apply(m *nats.Msg, seq uint64) {
	key, ok := strings.CutPrefix(m.Subject, c.bus.names.catalogKey(""))
	if !ok {
		return
	}
	withdrawn := m.Header.Get("KV-Operation") != ""
	gone := withdrawn || m.Header.Get("Nats-Marker-Reason") != ""
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = seq
	if set, ok := strings.CutPrefix(key, "tools."); ok {
		c.applySet(set, m.Data, gone)
		return
	}
	if gone {
		c.leave(key, !withdrawn)
		return
	}
	c.applyWorker(key, m.Data)
}

func (c *Catalog) applySet(key string, data []byte, gone bool) {
	queue, digest, _ := strings.Cut(key, ".")
	if gone {
		delete(c.sets, key)
		return
	}
	var set ToolSet
	if err := schema.Decode(data, &set); err != nil || schema.Digest(data) != digest || schema.CheckQueue(queue) != nil {
		c.bus.log.Warn("catalog holds tools that are not as they say", "key", key, "error", err)
		return
	}
	for i := range set.Tools {
		set.Tools[i].Queue = queue
	}
	c.sets[key] = slices.DeleteFunc(set.Tools, func(t schema.Tool) bool { return t.Name == "" })
	c.changed()
}

func (c *Catalog) applyWorker(key string, data []byte) {
	queue, instance, _ := strings.Cut(key, ".")
	old, known := c.workers[key]
	var a Announcement
	if err := schema.Decode(data, &a); err != nil || schema.CheckQueue(queue) != nil || !schema.ValidID(instance) {
		return
	}
	delete(c.lost, key)
	c.workers[key] = WorkerInfo{Queue: queue, Instance: instance, Slots: a.Slots, digest: a.Digest, seen: time.Now()}
	if !known || old.digest != a.Digest {
		c.changed()
	}
}

// lostFor is how long the tools of a worker are shown after its heartbeats have ended.
const lostFor = 2 * HeartbeatTTL

// leave takes a worker out, which is missed for a while if it did not say that it leaves. It is called with mu held.
func (c *Catalog) leave(key string, missed bool) {
	w, known := c.workers[key]
	if known {
		for _, t := range c.sets[w.Queue+"."+w.digest] {
			c.gone[w.Queue+"/"+t.Name] = time.Now()
		}
	}
	delete(c.workers, key)
	switch {
	case known && missed:
		w.seen = time.Now()
		c.lost[key] = w
	case !missed:
		delete(c.lost, key)
	}
	c.changed()
}

// changed is called with mu held.
func (c *Catalog) changed() {
	c.version++
	close(c.change)
	c.change = make(chan struct{})
}

// expireEach forgets workers whose heartbeat stopped, until ctx ends: apart from the reader, so that they are forgotten
// also while the bucket cannot be reached.
func (c *Catalog) expireEach(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			c.expire(now)
		}
	}
}

func (c *Catalog) expire(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, w := range c.workers {
		if now.Sub(w.seen) > HeartbeatTTL+Heartbeat {
			c.leave(key, true)
		}
	}
	for key, w := range c.lost {
		if now.Sub(w.seen) > lostFor {
			c.leave(key, false)
		}
	}
	maps.DeleteFunc(c.gone, func(_ string, at time.Time) bool { return now.Sub(at) > lostFor })
}
