package bus_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// tally counts how many calls run at the same time, over all workers.
type tally struct {
	mu           sync.Mutex
	inside, most int
}

func (n *tally) run(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
	n.add(1)
	defer n.add(-1)
	for range 100 {
		runtime.Gosched() // long enough for whoever else may start
	}
	return c.Done("done"), nil
}

func (n *tally) add(d int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.inside += d
	n.most = max(n.most, n.inside)
}

// TestLimitOfAQueue: however many workers and slots there are, never more calls of a queue run at once than its limit.
func TestLimitOfAQueue(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"work", "work" + runOnce} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const limit, calls = 2, 100
			srv := server(t)
			b, n := connect(t, srv), &tally{}
			var results []<-chan schema.Result
			for i := range calls {
				results = append(results, dispatched(t, b, call("r", name, i), "test", time.Minute))
			}
			for range 2 {
				serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 8, Limit: limit, Tools: toolbox{name: n.run}})
			}
			for i, done := range results {
				if r := <-done; !r.OK {
					t.Errorf("call %d: %+v", i, r)
				}
			}
			if n.most > limit {
				t.Errorf("%d calls ran at once, want at most %d", n.most, limit)
			}
		})
	}
}

// TestUnknownToolOnALimitedQueue: a call of a tool that no worker of a limited queue has is settled, and holds the place of
// others no longer than it takes to see that.
func TestUnknownToolOnALimitedQueue(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f, b := stranger(t, srv), connect(t, srv)
	results := f.listen("jc.live.strange.result.>")
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 2, Limit: 1, Tools: toolbox{"echo": echo}})
	f.store("jc.work.test.0", []byte(`{"v":1,"run":"strange","turn":1,"index":0,"tool":"nosuch","args":"{}","timeout_ms":3600000}`))
	if r := soon(t, dispatched(t, b, call("r", "echo", 0), "test", time.Hour)); !r.OK {
		t.Errorf("%+v", r)
	}
	if r := f.awaitResult(results); r.Error == nil || r.Error.Type != schema.NoWorker {
		t.Errorf("%+v", r)
	}
}

// TestLimitIsAgreed: a worker that names another limit than the queue has is refused with the difference; one that names
// none takes it; a change is made on purpose, and workers that run follow it.
func TestLimitIsAgreed(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f, b, g := stranger(t, srv), connect(t, srv), newGate()
	w := func(limit int) bus.Worker {
		return bus.Worker{Queue: "test", Slots: 8, Limit: limit, Tools: toolbox{"gate": g.tool("w")}}
	}
	if _, known, err := b.LimitOf(t.Context(), "test"); known || err != nil {
		t.Errorf("known before anybody serves it: %t, %v", known, err)
	}
	for i, limit := range []int{2, 0} {
		serve(t, connect(t, srv), w(limit))
		bustest.Eventually(t, "it is served", func() bool { return len(b.Catalog().Workers()) == i+1 }) // each is announced when it knows the limit
		bustest.Eventually(t, "the queue has its limit", func() bool { has, known, _ := b.LimitOf(t.Context(), "test"); return known && has == 2 })
	}
	err := b.Serve(t.Context(), w(3))
	var differ *bus.LimitError
	if !errors.As(err, &differ) || differ.Has != 2 || differ.Want != 3 || !strings.Contains(err.Error(), "max_ack_pending is 2, want 3") {
		t.Fatalf("error %v", err)
	}

	f.api("CONSUMER.DELETE.JC_WORK.test", "")
	bustest.Eventually(t, "the consumer is there again, with its limit", func() bool { has, known, _ := b.LimitOf(t.Context(), "test"); return known && has == 2 })
	var results []<-chan schema.Result
	for i := range 8 {
		results = append(results, dispatched(t, b, call("r", "gate", i), "test", time.Minute))
	}
	entered := func(n int) {
		t.Helper()
		for range n {
			<-g.entered
		}
		bustest.Eventually(t, "the limit is reached", func() bool {
			return f.consumerNumber("test", "num_ack_pending")+f.consumerNumber("test", "num_pending") == 8 && f.consumerNumber("test", "num_waiting") > 0
		})
		select {
		case <-g.entered:
			t.Error("another call began")
		default:
		}
	}
	entered(2)
	if err := b.Limit(t.Context(), "test", 5); err != nil {
		t.Fatal(err)
	}
	entered(3)
	close(g.open)
	for i, done := range results {
		if r := <-done; !r.OK {
			t.Errorf("call %d: %+v", i, r)
		}
	}
}

func TestLimitRefused(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	for queue, limit := range map[string]int{"agents": 3, "none": 3, "test": -1} {
		if err := b.Limit(t.Context(), queue, limit); err == nil {
			t.Errorf("%s %d: no error", queue, limit)
		}
	}
	err := b.Serve(t.Context(), bus.Worker{Queue: "test", Limit: -1, Tools: toolbox{"echo": echo}})
	if err == nil || !strings.Contains(err.Error(), "limit -1") {
		t.Errorf("error %v", err)
	}
	for _, limit := range []int{4, 0} { // of a queue that nobody serves
		if err := b.Limit(t.Context(), "test", limit); err != nil {
			t.Fatal(err)
		}
		if has, known, err := b.LimitOf(t.Context(), "test"); has != limit || !known || err != nil {
			t.Errorf("%d: %d, %t, %v", limit, has, known, err)
		}
	}
	err = b.Serve(t.Context(), bus.Worker{Queue: "test", Limit: 4, Tools: toolbox{"echo": echo}})
	if want := fmt.Sprintf("max_ack_pending is -1, want %d", 4); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}
