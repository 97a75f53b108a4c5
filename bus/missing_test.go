package bus

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// TestMissing: an agent is missing when the catalog has been read for so long without a break, and nobody had it all the
// while: neither is a restart of the reader, of the server, or of the one who serves it, a reason to give up a call.
func TestMissing(t *testing.T) {
	t.Parallel()
	offered := func(c *Catalog) { c.workers["agents.w"] = WorkerInfo{Queue: "agents", Instance: "w", digest: "d"} }
	tests := map[string]struct {
		before time.Duration // that the catalog was read before
		set    func(*Catalog)
		after  time.Duration // that passes then
		want   bool
	}{
		"nobody ever had it":                        {time.Minute, func(*Catalog) {}, 0, true},
		"read for too short a time":                 {29 * time.Second, func(*Catalog) {}, 0, false},
		"read for just long enough":                 {30 * time.Second, func(*Catalog) {}, 0, true},
		"not read at all":                           {time.Minute, func(c *Catalog) { c.readingSince(time.Time{}) }, time.Minute, false},
		"read anew":                                 {time.Minute, func(c *Catalog) { c.readingSince(time.Now()) }, 20 * time.Second, false},
		"somebody has it":                           {time.Minute, offered, time.Minute, false},
		"who is there has tools that were not read": {time.Minute, func(c *Catalog) { c.workers["agents.w"] = WorkerInfo{Queue: "agents", Instance: "w", digest: "e"} }, time.Minute, false},
		"somebody has it on another queue":          {time.Minute, func(c *Catalog) { c.workers["q.w"] = WorkerInfo{Queue: "q", Instance: "w", digest: "d"} }, time.Minute, true},
		"who had it has left a moment ago":          {time.Minute, func(c *Catalog) { offered(c); c.leave("agents.w", false) }, 29 * time.Second, false},
		"who had it is missed for a moment":         {time.Minute, func(c *Catalog) { offered(c); c.leave("agents.w", true) }, 29 * time.Second, false},
		"who had it has left for long":              {time.Minute, func(c *Catalog) { offered(c); c.leave("agents.w", false) }, 30 * time.Second, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &Catalog{
					workers: map[string]WorkerInfo{}, lost: map[string]WorkerInfo{}, gone: map[string]time.Time{}, change: make(chan struct{}),
					sets: map[string][]schema.Tool{"agents.d": {{Name: "anna", Queue: "agents"}}, "q.d": {{Name: "anna", Queue: "q"}}},
				}
				c.readingSince(time.Now())
				time.Sleep(tt.before)
				tt.set(c)
				time.Sleep(tt.after)
				if got := c.missing("agents", "anna", time.Now().Add(-unservedAfter)); got != tt.want {
					t.Errorf("missing: %t", got)
				}
			})
		})
	}
}
