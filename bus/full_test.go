package bus_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// TestB17FullWorkStream: with an operator's limits on the work stream each call is either in the stream and done once
// there is a worker, or it is told at once that the queue is full. None is lost between.
func TestB17FullWorkStream(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*jetstream.StreamConfig){
		"bytes":                func(c *jetstream.StreamConfig) { c.MaxBytes = 16 << 10 },
		"messages and bytes":   func(c *jetstream.StreamConfig) { c.MaxMsgs, c.MaxBytes = 40, 16<<10 },
		"bytes, three servers": func(c *jetstream.StreamConfig) { c.MaxBytes, c.Replicas = 16<<10, 3 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := bus.Streams("jc", 1)[0]
			limit(&cfg)
			if cfg.Replicas == 3 {
				c := bustest.StartCluster(t, 3)
				full(t, strangerAt(t, c.URL()), member(t, c), member(t, c), cfg)
				return
			}
			srv := server(t)
			full(t, stranger(t, srv), connect(t, srv), connect(t, srv), cfg)
		})
	}
}

// full dispatches more calls than the work stream takes, and has those done that it took.
func full(t *testing.T, f foreign, b, w *bus.Bus, cfg jetstream.StreamConfig) {
	t.Helper()
	update, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if answer := f.api("STREAM.UPDATE."+cfg.Name, string(update)); answer["error"] != nil {
		t.Fatalf("update: %v", answer["error"])
	}
	const calls = 200
	run := schema.NewID()
	done, refused := make(chan schema.Result, calls), make(chan schema.Result, calls)
	var open sync.WaitGroup
	for i := range calls {
		open.Go(func() {
			r, err := b.Dispatch(t.Context(), call(run, []string{"echo", "echo" + runOnce}[i%2], i), "test", time.Minute)
			switch {
			case err != nil:
				t.Error(err)
			case r.OK:
				done <- r
			default:
				refused <- r
			}
		})
	}
	queued := 0
	bustest.Eventually(t, "each call is queued or refused", func() bool {
		queued = f.waiting()
		return queued+len(refused) == calls
	})
	serve(t, w, bus.Worker{Queue: "test", Slots: 8, Tools: toolbox{"echo": echo, "echo" + runOnce: echo}})
	open.Wait()
	close(refused)
	if queued == 0 || len(done) != queued || len(refused) != calls-queued {
		t.Errorf("%d calls were queued, %d done and %d refused", queued, len(done), len(refused))
	}
	for r := range refused {
		if r.Error.Type != schema.QueueFull {
			t.Errorf("refused: %+v", r)
		}
	}
}

// waiting returns how many messages the work stream holds.
func (f foreign) waiting() int {
	f.t.Helper()
	n, _ := f.api("STREAM.INFO.JC_WORK", "")["state"].(map[string]any)["messages"].(float64)
	return int(n)
}

// TestB25DeadAttempts: however many calls were taken by workers that died, they hold up nobody, and come again.
func TestB25DeadAttempts(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f, b := stranger(t, srv), connect(t, srv)
	f.consumer("test")
	const dead = 1200 // more than a consumer lets wait for acknowledgement by default
	taken := f.listen(f.nc.NewRespInbox())
	for i := range dead {
		f.store("jc.work.test.0", fmt.Appendf(nil, `{"run":"dead","turn":1,"index":%d,"tool":"echo","idempotent":true}`, i))
	}
	if err := f.nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.JC_WORK.test", taken.Subject, fmt.Appendf(nil, `{"batch":%d,"expires":20000000000}`, dead)); err != nil {
		t.Fatal(err)
	}
	for range dead {
		f.next(taken) // and never a word of it again
	}
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 16, Tools: toolbox{"echo": echo}})
	r, err := b.Dispatch(t.Context(), call("r", "echo", 0), "test", time.Minute)
	if err != nil || !r.OK || r.Delivery != 1 {
		t.Errorf("a healthy call: %+v, %v", r, err)
	}
	f.waitEmpty()
	facts, err := b.Facts(t.Context(), "dead", 0, schema.KindResult)
	if err != nil || len(facts) != dead {
		t.Errorf("%d results, %v", len(facts), err)
	}
}
