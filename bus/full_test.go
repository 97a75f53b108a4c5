package bus_test

import (
	"encoding/json"
	"errors"
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
				full(t, stranger(t, bustest.At(c.URL())), member(t, c), member(t, c), cfg)
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

// TestFullRunStream: above the watermark no run is opened, whoever asks; a child call is told so and one in the queue waits.
// What is under way gets its results and its end, and where closed runs have expired new ones are opened again.
func TestFullRunStream(t *testing.T) {
	t.Parallel()
	for name, nodes := range map[string]int{"one server": 1, "three servers": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if nodes == 3 {
				c := bustest.StartCluster(t, 3)
				runsFull(t, stranger(t, bustest.At(c.URL())), member(t, c), member(t, c), 3)
				return
			}
			srv := server(t)
			runsFull(t, stranger(t, srv), connect(t, srv), connect(t, srv), 1)
		})
	}
}

func runsFull(t *testing.T, f foreign, b, w *bus.Bus, replicas int) {
	t.Helper()
	var cfg jetstream.StreamConfig
	for _, cfg = range bus.Streams("jc", replicas) {
		if cfg.Name == "JC_RUNS" {
			break
		}
	}
	cfg.MaxBytes = 256 << 10
	update, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if answer := f.api("STREAM.UPDATE.JC_RUNS", string(update)); answer["error"] != nil {
		t.Fatalf("update: %v", answer["error"])
	}
	serve(t, w, bus.Worker{Queue: "test", Slots: 8, Tools: mixedTools(t)})
	if err := w.Select("book").Wait(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	host(t, w, &slowModel{})
	run, ballast := schema.NewID(), schema.NewID()
	if _, err := b.Append(t.Context(), run, schema.OpenKey(), &schema.Open{Kind: schema.RunCall}, schema.Key{}); err != nil {
		t.Fatal(err)
	}
	for k := 1; ; k++ {
		bytes, _ := f.api("STREAM.INFO.JC_RUNS", "")["state"].(map[string]any)["bytes"].(float64)
		if int64(bytes) > cfg.MaxBytes*92/100 {
			break
		}
		if _, err := b.Append(t.Context(), ballast, schema.SayKey(k), &schema.Say{Role: schema.RoleUser, Text: text(4 << 10)}, schema.Key{}); err != nil {
			t.Fatal(err)
		}
	}
	opened := func() error {
		_, err := b.Append(t.Context(), schema.NewID(), schema.OpenKey(), &schema.Open{Kind: schema.RunCall}, schema.Key{})
		return err
	}
	bustest.Eventually(t, "no run is opened", func() bool { return errors.Is(opened(), schema.ErrNoRoom) })
	if err := b.StartRun(t.Context(), &schema.Call{Run: schema.NewID(), Tool: "helper", Args: `{"task":"go"}`}); !errors.Is(err, schema.ErrNoRoom) {
		t.Errorf("a run was started: %v", err)
	}
	if _, err := b.Append(t.Context(), run, schema.OpenKey(), &schema.Open{Kind: schema.RunCall, Trace: map[string]string{"another": "one"}}, schema.Key{}); !errors.Is(err, schema.ErrExists) {
		t.Errorf("opened twice: %v", err)
	}
	queued := schema.NewID()
	data, err := schema.Encode(&schema.Call{Run: queued, Tool: "helper", Args: `{"task":"go"}`})
	if err != nil {
		t.Fatal(err)
	}
	f.say("jc.work.agents.0", data)
	child := call(run, "helper", 0)
	child.Args = `{"task":"go"}`
	if r, err := b.Dispatch(t.Context(), child, schema.QueueAgents, time.Minute); err != nil || r.Error == nil || r.Error.Type != schema.QueueFull {
		t.Errorf("child: %+v, %v", r, err)
	}
	booking := call(run, "book", 1)
	booking.Args = `{"seat":"4C"}`
	if r, err := b.Dispatch(t.Context(), booking, "test", time.Minute); err != nil || !r.OK {
		t.Errorf("a call of a run under way: %+v, %v", r, err)
	}
	if _, err := b.Append(t.Context(), run, schema.CloseKey(), &schema.Close{State: "done"}, schema.Key{}); err != nil {
		t.Errorf("its end: %v", err)
	}
	if answer := f.api("STREAM.PURGE.JC_RUNS", fmt.Sprintf(`{"filter":"jc.run.%s.>"}`, ballast)); answer["error"] != nil {
		t.Fatalf("purge: %v", answer["error"])
	}
	for _, err := range bustest.Check(waitClosed(t, b, queued, bustest.Patience)) {
		t.Error(err)
	}
	if err := opened(); err != nil {
		t.Errorf("there is room again: %v", err)
	}
}
