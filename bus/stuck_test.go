package bus_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// TestB25DeadAttemptsHoldNothing: a worker takes hundreds of calls and is gone, on a consumer that lets any number be
// under way, and on one that somebody made with a bound that these fill. The next worker gets them all.
func TestB25DeadAttemptsHoldNothing(t *testing.T) {
	t.Parallel()
	const calls, taken = 300, 100
	for _, bound := range []int{-1, taken} {
		t.Run(fmt.Sprintf("max_ack_pending %d", bound), func(t *testing.T) {
			t.Parallel()
			srv := server(t)
			b := connect(t, srv)
			f := stranger(t, srv)
			cfg := bus.ConsumerConfig("jc", "test")
			cfg.MaxAckPending = bound
			body, err := json.Marshal(map[string]any{"stream_name": "JC_WORK", "config": cfg})
			if err != nil {
				t.Fatal(err)
			}
			if answer := f.api("CONSUMER.DURABLE.CREATE.JC_WORK.test", string(body)); answer["error"] != nil {
				t.Fatal(answer["error"])
			}
			run := schema.NewID()
			results := make([]<-chan schema.Result, calls)
			for i := range results {
				results[i] = dispatched(t, b, bustest.Call(run, "echo", i), "test", time.Minute)
			}
			f.takeAndDie("test", taken)
			serve(t, b, bus.Worker{Queue: "test", Slots: 8, Tools: toolbox{"echo": echo}})
			again := 0
			for i, result := range results {
				r := <-result
				if !r.OK || r.Delivery > 2 {
					t.Errorf("call %d: %+v", i, r)
				}
				if r.Delivery == 2 {
					again++
				}
			}
			if again != taken {
				t.Errorf("%d calls came again, want %d", again, taken)
			}
			f.waitEmpty()
		})
	}
}

// takeAndDie gets n deliveries as a worker that dies with them.
func (f foreign) takeAndDie(queue string, n int) {
	f.t.Helper()
	inbox := f.nc.NewRespInbox()
	sub := f.listen(inbox)
	if err := f.nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.JC_WORK."+queue, inbox, fmt.Appendf(nil, `{"batch":%d,"expires":20000000000}`, n)); err != nil {
		f.t.Fatal(err)
	}
	for range n {
		if m := f.next(sub); m.Reply == "" {
			f.t.Fatalf("no delivery: %v", m.Header)
		}
	}
}
