package bus

import (
	"fmt"
	"slices"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// unservedAfter is how long an agent is looked for whose call nobody takes, before that settles as NoWorker: as long as
// the catalog remembers workers that are missed, so that a restart of who serves it, or of the server, is no reason.
const unservedAfter = lostFor

// lookForEvery is how often an agent is looked for behind that.
const lookForEvery = 5 * time.Second

// unserved tells whether a call of an agent, published at a time on this clock, has waited long enough, and nobody was seen
// who serves the agent all the while, on a connection that was healthy. Who has begun the call is found by the guard of
// the result alone.
func (b *Bus) unserved(agent string, published time.Time) bool {
	b.mu.Lock()
	c := b.catalog.Catalog
	b.mu.Unlock()
	begin := time.Now().Add(-b.unservedAfter)
	return c != nil && published.Before(begin) && b.unbrokenSince(begin) && c.missing(schema.QueueAgents, agent, begin)
}

func (o *owner) unservedText() string {
	return fmt.Sprintf("nobody serves the agent %.80q, which was looked for during %v", o.call.Tool, o.bus.unservedAfter)
}

// lookNext is when it is seen whether anybody serves the call's agent; never, if the call is another one's or has begun.
func (o *owner) lookNext() time.Time {
	switch {
	case !o.state.child || o.began:
		return o.deadline
	case o.looked.IsZero():
		return o.published().Add(o.bus.unservedAfter)
	}
	return o.looked.Add(lookForEvery)
}

func (o *owner) unserved() bool {
	o.looked = time.Now()
	return o.bus.unserved(o.call.Tool, o.published())
}

// published is when the call's time began.
func (o *owner) published() time.Time { return o.deadline.Add(-o.within) }

// missing tells whether the catalog was read since a time without a break, and no worker of queue had the tool. A worker whose
// definitions were not read, or not as they say, may have it.
func (c *Catalog) missing(queue, tool string, since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading.IsZero() || c.reading.After(since) || c.gone[queue+"/"+tool].After(since) {
		return false
	}
	for key, w := range c.workers {
		if _, known := c.sets[queue+"."+w.digest]; w.Queue == queue && (!known || c.has(key, tool)) {
			return false
		}
	}
	return true
}

// has tells whether a worker that is alive offers a tool. It wants c.mu held.
func (c *Catalog) has(key, tool string) bool {
	w := c.workers[key]
	return slices.ContainsFunc(c.sets[w.Queue+"."+w.digest], func(t schema.Tool) bool { return t.Name == tool })
}
