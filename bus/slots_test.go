package bus_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// deafTools have handlers that were given up and still run.
type deafTools struct {
	bus.Server
	lost atomic.Int64
}

func (d *deafTools) Abandoned() int64 { return d.lost.Load() }

// TestC03LostSlots: a handler that was given up holds its slot until it returns after all.
func TestC03LostSlots(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f, b, g := stranger(t, srv), connect(t, srv), newGate()
	tools := &deafTools{Server: toolbox{"gate": g.tool("w")}}
	tools.lost.Store(1)
	f.consumer("test")
	stored := f.listen("jc.work.test.0")
	var results []<-chan schema.Result
	for i := range 3 {
		results = append(results, dispatched(t, b, call("r", "gate", i), "test", time.Minute))
		f.next(stored)
	}
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 2, Tools: tools})
	waits := func(n int) {
		t.Helper()
		bustest.Eventually(t, "calls are taken", func() bool { return f.consumerNumber("test", "num_pending") <= n })
		if got := f.consumerNumber("test", "num_pending"); got != n {
			t.Errorf("%d calls wait, want %d", got, n)
		}
	}
	<-g.entered
	waits(2)
	tools.lost.Store(0)
	<-g.entered
	waits(1)
	close(g.open)
	for i, done := range results {
		if r := <-done; !r.OK {
			t.Errorf("call %d: %+v", i, r)
		}
	}
	g.check(t, 2)
}
