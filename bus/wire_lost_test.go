package bus_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

// A begin whose instance does not run the call any more: nobody knows what it did. One of another WORK sequence is
// another copy's business.
func TestCallBegunBySomebodyElse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer string // on the own-subject; empty: nobody is there
		seq    uint64
		want   schema.ErrorType // empty: no result
	}{
		{"vanished", "", 1, schema.OutcomeUnknown},
		{"not running", `{"v":1,"running":false}`, 1, schema.OutcomeUnknown},
		{"another sequence", "", 99, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := server(t)
			f := stranger(t, srv)
			b := connect(t, srv)
			if c.answer != "" {
				sub, err := f.nc.Subscribe("jc.own.ghost", func(m *nats.Msg) { _ = m.Respond([]byte(c.answer)) })
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = sub.Unsubscribe() })
			}
			acks, result := f.acks("test"), f.listen("jc.live.r.result.>")
			f.consumer("test")
			f.store("jc.work.test.0", []byte(`{"run":"r","turn":1,"index":0,"tool":"never!"}`))
			f.store("jc.run.r.begin.1.0.test", fmt.Appendf(nil, `{"v":1,"instance":"ghost","delivery":1,"seq":%d}`, c.seq), once, "0")
			serve(t, b, bus.Worker{Queue: "test", Tools: toolbox{"never" + runOnce: neverRun(t)}})
			if c.want != "" {
				if r := f.awaitResult(result); r.OK || r.Error.Type != c.want {
					t.Errorf("%+v", r)
				}
			}
			f.ack(acks, "+ACK")
			if f.has("jc.run.r.result.1.0.test") != (c.want != "") {
				t.Errorf("result is there: %t", c.want == "")
			}
		})
	}
}

// TestC05CancelDoesNotHoldUpALostCall: the hint to cancel, repeated for a run that is being stopped, must not keep a
// worker from finding out that the one that began the call is gone.
func TestC05CancelDoesNotHoldUpALostCall(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	b := connect(t, srv)
	result := f.listen("jc.live.r.result.>")
	f.consumer("test")
	f.store("jc.work.test.0", []byte(`{"run":"r","turn":1,"index":0,"tool":"never!"}`))
	f.store("jc.run.r.begin.1.0.test", []byte(`{"v":1,"instance":"ghost","delivery":1,"seq":1}`), once, "0")
	serve(t, b, bus.Worker{Queue: "test", Tools: toolbox{"never" + runOnce: neverRun(t)}})
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				_ = f.nc.Publish("jc.cancel.r", []byte(`{"v":1,"reason":"stopped"}`))
			}
		}
	}()
	if r := f.awaitResult(result); r.OK || r.Error.Type != schema.OutcomeUnknown {
		t.Errorf("%+v", r)
	}
	close(over)
	<-ended
}

// TestC04CopyDoesNotTakeTheOriginalAway: while a copy of a begun call is in the table, the message whose begin stands
// comes to the same worker. It must stay, or nobody would ever settle the call.
func TestC04CopyDoesNotTakeTheOriginalAway(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	b := connect(t, srv)
	result := f.listen("jc.live.r.result.>")
	f.consumer("test")
	body := []byte(`{"run":"r","turn":1,"index":0,"tool":"never!"}`)
	for range 5 { // the first is the original
		f.store("jc.work.test.0", body)
	}
	f.store("jc.run.r.begin.1.0.test", []byte(`{"v":1,"instance":"ghost","delivery":1,"seq":1}`), once, "0")
	serve(t, b, bus.Worker{Queue: "test", Slots: 8, Tools: toolbox{"never" + runOnce: neverRun(t)}})
	if r := f.awaitResult(result); r.OK || r.Error.Type != schema.OutcomeUnknown {
		t.Errorf("%+v", r)
	}
}

// A call whose workers died too often is given up: result, dead letter, end. Deliveries that were given back in
// writing do not count.
func TestAttemptsOfALostCall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		backs int
		lost  bool
	}{{"three attempts", 0, true}, {"one of them given back", 1, false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := server(t)
			f := stranger(t, srv)
			b := connect(t, srv)
			f.consumer("test")
			dead, result := f.listen("jc.dead.test"), f.listen("jc.live.r.result.>")
			f.store("jc.work.test.0", []byte(`{"run":"r","turn":1,"index":0,"tool":"echo","idempotent":true}`))
			for d := range 3 {
				reply := f.pull("test")
				if d < c.backs {
					f.store(fmt.Sprintf("jc.run.r.back.1.0.test.1.%d", d+1), []byte(`{"v":1,"instance":"ghost"}`), once, "0")
				}
				f.say(reply, []byte("-NAK"))
			}
			serve(t, b, bus.Worker{Queue: "test", Tools: toolbox{"echo": echo}})
			r := f.awaitResult(result)
			if r.OK == c.lost || c.lost && r.Error.Type != schema.WorkerLost {
				t.Errorf("%+v", r)
			}
			if c.lost {
				var letter bus.DeadLetter
				if err := schema.Decode(f.next(dead).Data, &letter); err != nil || letter.Delivery != 4 || letter.Seq != 1 {
					t.Errorf("%+v, %v", letter, err)
				}
			}
			f.waitEmpty()
		})
	}
}

// TestB05LetterOfALostCall: whoever gave the call up died before the dead letter, so the next worker writes it.
func TestB05LetterOfALostCall(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	b := connect(t, srv)
	f.consumer("test")
	dead := f.listen("jc.dead.test")
	f.store("jc.work.test.0", []byte(`{"run":"r","turn":1,"index":0,"tool":"never","idempotent":true}`))
	for range 3 {
		f.say(f.pull("test"), []byte("-NAK"))
	}
	f.store("jc.run.r.result.1.0.test", []byte(`{"v":1,"run":"r","turn":1,"index":0,"ok":false,"output":"TOOL_ERROR","error":{"type":"WorkerLost","message":"lost"}}`), once, "0")
	serve(t, b, bus.Worker{Queue: "test", Tools: toolbox{"never": neverRun(t)}})
	var letter bus.DeadLetter
	if err := schema.Decode(f.next(dead).Data, &letter); err != nil || letter.Seq != 1 || letter.Delivery != 4 {
		t.Errorf("%+v, %v", letter, err)
	}
	f.waitEmpty()
}
