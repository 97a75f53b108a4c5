package bus_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

// TestD15CopyOfASettledCall: a copy of a message, which comes when the call has its result, is acknowledged and starts
// nothing; who makes the call again gets the result that it has.
func TestD15CopyOfASettledCall(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f, b, g := stranger(t, srv), connect(t, srv), newGate()
	close(g.open)
	const tool = "gate" + runOnce
	acks, work := f.acks("test"), f.listen("jc.work.test.0")
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 2, Tools: toolbox{tool: g.tool("w")}})
	first := <-dispatched(t, b, call("r", tool, 0), "test", time.Minute)
	m := f.next(work)
	f.ack(acks, "+ACK")
	f.store(m.Subject, m.Data)
	f.ack(acks, "+ACK")
	again := <-dispatched(t, b, call("r", tool, 0), "test", time.Minute)
	if !first.OK || again.EndedMS != first.EndedMS || again.Delivery != first.Delivery {
		t.Errorf("first %+v, then %+v", first, again)
	}
	f.waitEmpty()
	g.check(t, 2)
}

// TestD15ResultWhileAsking: the worker of a call is silent, and while another asks for it the result comes after all.
// That one stands.
func TestD15ResultWhileAsking(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f, b := stranger(t, srv), connect(t, srv)
	acks, asked, results := f.acks("test"), f.listen("jc.own.ghost"), f.listen("jc.live.r.result.>")
	f.consumer("test")
	f.store("jc.work.test.0", []byte(`{"run":"r","turn":1,"index":0,"tool":"never!"}`))
	f.store("jc.run.r.begin.1.0.test", []byte(`{"v":1,"instance":"ghost","delivery":1,"seq":1}`), once, "0")
	serve(t, b, bus.Worker{Queue: "test", Tools: toolbox{"never" + runOnce: neverRun(t)}})
	f.next(asked)
	late := schema.Result{Run: "r", Turn: 1, OK: true, Output: "late", Worker: "ghost", Delivery: 1}
	data, err := schema.Encode(&late)
	if err != nil {
		t.Fatal(err)
	}
	f.store("jc.run.r.result.1.0.test", data, once, "0")
	f.ack(acks, "+ACK")
	if r := f.awaitResult(results); r.Output != "late" {
		t.Errorf("%+v", r)
	}
	f.waitEmpty()
}

// TestStoppedLongAfterItBegan: the worker of a call that an earlier owner published is lost, and the call's message has
// expired. Who stops the run then knows from begin when nobody can be at work on the call any more, and waits no longer.
func TestStoppedLongAfterItBegan(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f, b := stranger(t, srv), connect(t, srv)
	soonOver := time.Now().Add(time.Second).UnixMilli()
	f.store("jc.run.r.begin.1.0.test", fmt.Appendf(nil, `{"v":1,"instance":"ghost","delivery":1,"seq":1,"deadline_ms":%d}`, soonOver), once, "0")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done := make(chan schema.Result, 1)
	b.Start(schema.Dispatch{Ctx: ctx, Call: call("r", "work"+runOnce, 0), Queue: "test", Done: func(r schema.Result, err error) {
		if err != nil {
			t.Error(err)
		}
		done <- r
	}})
	if r := soon(t, done); r.Error == nil || r.Error.Type != schema.OutcomeUnknown {
		t.Errorf("%+v", r)
	}
}
