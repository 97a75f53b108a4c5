package bus_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// member connects to some nodes of a cluster, all when none is named, with every stream on three nodes.
func member(t testing.TB, c *bustest.Cluster, nodes ...int) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Config{URL: c.URL(nodes...), Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// counter counts how often each call was started.
type counter struct {
	mu     sync.Mutex
	starts map[string]int
}

func (n *counter) run(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.starts[c.String()]++
	return c.Done("done"), nil
}

// turns dispatches turns of calls, idempotent and run-once by turns, until faults has returned, and wants of every call
// a result that says it was done, a run-once one started once.
func turns(t *testing.T, b *bus.Bus, n *counter, faults func()) {
	t.Helper()
	const parallel = 8
	over := make(chan struct{})
	go func() {
		defer close(over)
		faults()
	}()
	run, slowest := schema.NewID(), time.Duration(0)
	for turn, ended := 1, false; !ended; turn++ {
		select {
		case <-over:
			ended = true // one more turn, with nothing in its way
		default:
		}
		began := time.Now()
		var open sync.WaitGroup
		for i := range parallel {
			c := call(run, []string{"work", "work" + runOnce}[i%2], i)
			c.Turn = turn
			open.Go(func() {
				r, err := b.Dispatch(t.Context(), c, "test", time.Minute)
				if err != nil || !r.OK {
					t.Errorf("%s: %+v, %v", c, r, err)
				}
				n.mu.Lock()
				defer n.mu.Unlock()
				if starts := n.starts[c.String()]; starts == 0 || starts > 1 && !c.Idempotent {
					t.Errorf("%s was started %d times", c, starts)
				}
			})
		}
		open.Wait()
		slowest = max(slowest, time.Since(began))
	}
	t.Logf("slowest turn %v", slowest)
}

// TestB12LeadersAndNodes: calls go on while leaders step down, a node is stopped and started and another goes in lame
// duck mode.
func TestB12LeadersAndNodes(t *testing.T) {
	t.Parallel()
	c := bustest.StartCluster(t, 3)
	n := &counter{starts: map[string]int{}}
	for i := range 3 {
		serve(t, member(t, c, i, (i+1)%3), bus.Worker{Queue: "test", Slots: 4, Tools: toolbox{"work": n.run, "work" + runOnce: n.run}})
	}
	b := member(t, c)
	bustest.Eventually(t, "the workers serve", func() bool { return len(b.Catalog().Workers()) == 3 })
	turns(t, b, n, func() {
		for _, stream := range []string{"JC_WORK", "JC_RUNS"} {
			c.StepDown(stream, "")
			lasts(300 * time.Millisecond)
		}
		c.StepDown("JC_WORK", "test")
		c.Stop(0)
		lasts(300 * time.Millisecond)
		c.Start(0)
		c.LameDuck(1)
		c.Start(1)
	})
}

// TestB23QuorumLost: without a quorum nothing is decided, and when it is back everything goes on.
func TestB23QuorumLost(t *testing.T) {
	t.Parallel()
	c := bustest.StartCluster(t, 3)
	n := &counter{starts: map[string]int{}}
	serve(t, member(t, c, 0), bus.Worker{Queue: "test", Slots: 4, Tools: toolbox{"work": n.run, "work" + runOnce: n.run}})
	turns(t, member(t, c, 0), n, func() {
		c.Isolate(1)
		c.Isolate(2)
		lasts(2 * time.Second)
		c.Rejoin(1)
		c.Rejoin(2)
	})
}

// TestC14OneTaker: of several who take the next slot of a run at once, on different nodes, one has it.
func TestC14OneTaker(t *testing.T) {
	t.Parallel()
	c := bustest.StartCluster(t, 3)
	takers := []*bus.Bus{member(t, c, 0), member(t, c, 1), member(t, c, 2)}
	run := schema.NewID()
	for k := 1; k <= 50; k++ {
		errs := make([]error, len(takers))
		var racing sync.WaitGroup
		for i, b := range takers {
			racing.Go(func() {
				_, errs[i] = b.Append(t.Context(), run, schema.CtlKey(k), &schema.Ctl{Act: schema.CtlOwn, Instance: b.Instance()}, schema.Key{})
			})
		}
		racing.Wait()
		won := 0
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case !errors.Is(err, schema.ErrExists):
				t.Errorf("slot %d: %v", k, err)
			}
		}
		if won != 1 {
			t.Errorf("slot %d was taken by %d", k, won)
		}
	}
}

// TestStaleReads: a reader whose node is behind gets what it waits for, and nobody takes its silence for absence.
func TestStaleReads(t *testing.T) {
	t.Parallel()
	c := bustest.StartCluster(t, 3)
	member(t, c) // makes the streams
	bustest.Eventually(t, "the facts have a leader", func() bool { return c.Leader("JC_RUNS", "") >= 0 })
	leader := c.Leader("JC_RUNS", "")
	follower := (leader + 1) % 3
	writer, reader := member(t, c, leader), member(t, c, follower)
	c.Lag(follower, 10*time.Millisecond)
	behind := 0
	for n := range 30 {
		run := schema.NewID()
		seq, err := writer.Append(t.Context(), run, schema.OpenKey(), &schema.Open{}, schema.Key{})
		if err != nil {
			t.Fatal(err)
		}
		if data, err := reader.Glimpse(t.Context(), run, schema.OpenKey()); err != nil {
			t.Fatal(err)
		} else if data == nil {
			behind++
		}
		if data, err := reader.Look(t.Context(), run, schema.OpenKey()); err != nil || data == nil {
			t.Errorf("fact %d at the leader: %q, %v", n, data, err)
		}
		if facts, err := reader.Facts(t.Context(), run, seq); err != nil || len(facts) != 1 {
			t.Errorf("facts of run %d up to the barrier: %+v, %v", n, facts, err)
		}
	}
	t.Logf("%d of 30 direct reads were behind", behind)
}

// TestB06DeadLettersOfACluster: calls whose workers died as often as allowed are all accounted for, on three nodes and
// while they are looked at.
func TestB06DeadLettersOfACluster(t *testing.T) {
	t.Parallel()
	c := bustest.StartCluster(t, 3)
	b, f := member(t, c), stranger(t, bustest.At(c.URL()))
	f.consumer("test")
	const fatal, calls = 20, 200
	run := schema.NewID()
	results := make([]<-chan schema.Result, calls)
	for i := range fatal {
		results[i] = dispatched(t, b, call(run, "echo", i), "test", time.Minute)
	}
	for range fatal {
		f.pull("test") // by a worker that dies
	}
	for i := fatal; i < calls; i++ {
		results[i] = dispatched(t, b, call(run, "echo", i), "test", time.Minute)
	}
	for i := range 3 {
		serve(t, member(t, c, i), bus.Worker{Queue: "test", Slots: 4, Attempts: 1, Tools: toolbox{"echo": echo}})
	}
	for i, done := range results {
		switch r := <-done; {
		case i >= fatal && !r.OK:
			t.Errorf("healthy call %d: %+v", i, r)
		case i < fatal && (r.OK || r.Error.Type != schema.WorkerLost):
			t.Errorf("call %d: %+v", i, r)
		}
	}
	f.waitEmpty()
	for range 2 { // looking takes nothing away
		bustest.Eventually(t, "all are found", func() bool { // a replica may be behind
			found := map[int]bool{}
			for letter, err := range b.DeadLetters(t.Context()) {
				if err != nil || letter.Call == nil {
					t.Fatalf("%+v, %v", letter, err)
				}
				found[letter.Call.Index] = true
			}
			return len(found) == fatal
		})
	}
}
