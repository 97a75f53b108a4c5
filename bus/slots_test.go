package bus_test

import (
	"encoding/json"
	"fmt"
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

// TestSlotsAreFreeWhileResultsLeave: a call that has ended holds no slot while its result is on its way to the stream, but
// no more results leave at once than there are slots, so that a stream that is away stops the worker.
func TestSlotsAreFreeWhileResultsLeave(t *testing.T) {
	t.Parallel()
	const slots, calls = 2, 6
	srv := server(t)
	f, g := stranger(t, srv), newGate()
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: slots, Tools: toolbox{"gate": g.tool("w")}})
	config := f.api("STREAM.INFO.JC_RUNS", "")["config"]
	f.api("STREAM.DELETE.JC_RUNS", "")
	run := schema.NewID()
	for i := range calls {
		f.store("jc.work.test.0", fmt.Appendf(nil, `{"v":1,"run":%q,"turn":1,"index":%d,"tool":"gate","args":"{}","idempotent":true,"timeout_ms":60000}`, run, i))
	}
	<-g.entered
	<-g.entered
	g.open <- struct{}{}
	<-g.entered // in the slot of the one that has ended
	g.open <- struct{}{}
	bustest.Eventually(t, "two results leave, and nothing is asked for", func() bool {
		return f.consumerNumber("test", "num_waiting") == 0 && f.consumerNumber("test", "num_ack_pending") == slots+1
	})
	if n := f.consumerNumber("test", "num_pending"); n != calls-slots-1 || len(g.entered) > 0 {
		t.Errorf("%d calls wait, %d more have begun", n, len(g.entered))
	}
	body, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	f.api("STREAM.CREATE.JC_RUNS", string(body))
	close(g.open)
	f.waitEmpty()
	for i := range calls {
		if !f.has("jc.run." + run + "." + schema.ResultKey(1, i, "test").String()) {
			t.Errorf("call %d has no result", i)
		}
	}
	g.check(t, slots)
}
