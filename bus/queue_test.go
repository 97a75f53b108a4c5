package bus_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// streams returns what another program would manage the streams with.
func streams(t testing.TB, srv *bustest.Servers) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(stranger(t, srv).nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// TestForeignConsumers: a consumer that would break the protocol is refused at the start, and it is said what is wrong.
func TestForeignConsumers(t *testing.T) {
	t.Parallel()
	good := bus.ConsumerConfig("jc", "test")
	tests := []struct {
		name   string
		change func(*jetstream.ConsumerConfig)
		want   string
	}{
		{"B04 another AckWait", func(c *jetstream.ConsumerConfig) { c.AckWait = time.Second }, "ack_wait is 1s, want 6s"},
		{"B08 a BackOff in place of AckWait", func(c *jetstream.ConsumerConfig) { c.BackOff, c.MaxDeliver = []time.Duration{3 * time.Second}, 5 }, "backoff is 1, want 0"},
		{"B05 MaxDeliver", func(c *jetstream.ConsumerConfig) { c.MaxDeliver = 3 }, "max_deliver is 3, want -1"},
		{"B13 an inactive threshold", func(c *jetstream.ConsumerConfig) { c.InactiveThreshold = time.Hour }, "inactive_threshold is 1h0m0s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := server(t)
			b := connect(t, srv)
			c := good
			tt.change(&c)
			if _, err := streams(t, srv).CreateConsumer(t.Context(), "JC_WORK", c); err != nil {
				t.Fatal(err)
			}
			err := b.Serve(t.Context(), bus.Worker{Queue: "test", Tools: toolbox{"echo": echo}})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestB14InstancesShareOneConsumer: many that start at the same moment.
func TestB14InstancesShareOneConsumer(t *testing.T) {
	t.Parallel()
	srv := server(t)
	for range 8 {
		serve(t, connect(t, srv), bus.Worker{Queue: "test", Tools: toolbox{"echo": echo}})
	}
	b := connect(t, srv)
	bustest.Eventually(t, "all serve", func() bool { return len(b.Catalog().Workers()) == 8 })
	s, err := streams(t, srv).Stream(t.Context(), "JC_WORK")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for range s.ListConsumers(t.Context()).Info() {
		n++
	}
	if n != 1 {
		t.Errorf("%d consumers", n)
	}
}

// TestB16StreamThatDropsItsOldest: made by another program or an older version.
func TestB16StreamThatDropsItsOldest(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c := bus.Streams("jc", 1)[0]
	c.Discard = jetstream.DiscardOld
	if _, err := streams(t, srv).CreateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := bus.Connect(t.Context(), bus.Config{URL: srv.URL()}); err == nil || !strings.Contains(err.Error(), "discard") {
		t.Errorf("error %v", err)
	}
}

// TestB16FullWorkStream: nothing that waits is dropped, and whoever comes too late is told.
func TestB16FullWorkStream(t *testing.T) {
	t.Parallel()
	const limit, calls = 10, 15
	srv := server(t)
	c := bus.Streams("jc", 1)[0]
	c.MaxMsgs = limit
	if _, err := streams(t, srv).CreateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	b := connect(t, srv)
	run := schema.NewID()
	var mu sync.Mutex
	outcomes := map[schema.ErrorType]int{}
	var open sync.WaitGroup
	for i := range calls {
		open.Go(func() {
			r, err := b.Dispatch(t.Context(), call(run, "echo", i), "test", time.Minute)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case r.OK:
				outcomes[""]++
			default:
				outcomes[r.Error.Type]++
			}
		})
	}
	bustest.Eventually(t, "those that come too late are told", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return outcomes[schema.QueueFull] == calls-limit
	})
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 4, Tools: toolbox{"echo": echo}})
	open.Wait()
	if outcomes[""] != limit || len(outcomes) != 2 {
		t.Errorf("outcomes %v", outcomes)
	}
}

// TestB17AcknowledgedIsStored: under a limit on bytes, what is acknowledged is there, and what is not is refused.
func TestB17AcknowledgedIsStored(t *testing.T) {
	t.Parallel()
	srv := server(t)
	var runs jetstream.StreamConfig
	for _, c := range bus.Streams("jc", 1) {
		if c.Name == "JC_RUNS" {
			runs = c
		}
	}
	runs.MaxBytes = 64 << 10
	if _, err := streams(t, srv).CreateStream(t.Context(), runs); err != nil {
		t.Fatal(err)
	}
	b := connect(t, srv)
	run, stored := schema.NewID(), 0
	for k := 1; k <= 100; k++ {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := b.Append(ctx, run, schema.SayKey(k), &schema.Say{Role: schema.RoleUser, Text: text(2 << 10)}, schema.Key{})
		cancel()
		if err != nil {
			break
		}
		stored++
	}
	facts, err := b.Facts(t.Context(), run, 0)
	if err != nil || len(facts) != stored || stored == 0 || stored == 100 {
		t.Errorf("%d acknowledged, %d there, %v", stored, len(facts), err)
	}
}

// TestB10CopiesRunOnce: however often a call is published, its tool runs once and no copy is left.
func TestB10CopiesRunOnce(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	n := &counter{starts: map[string]int{}}
	serve(t, b, bus.Worker{Queue: "test", Slots: 4, Tools: toolbox{"work" + runOnce: n.run}})
	f := stranger(t, srv)
	c := call(schema.NewID(), "work"+runOnce, 0)
	data, err := schema.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		f.say("jc.work.test.0", data)
	}
	if r := settled(t, b, c); !r.OK {
		t.Errorf("%+v", r)
	}
	f.say("jc.work.test.0", data)
	bustest.Eventually(t, "no copy is left", func() bool {
		state, _ := f.api("STREAM.INFO.JC_WORK", "")["state"].(map[string]any)
		return state["messages"] == 0.0
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.starts[c.String()] != 1 {
		t.Errorf("started %d times", n.starts[c.String()])
	}
}

// TestB24FewSubjects: the work stream has one subject for a queue, however many runs there are.
func TestB24FewSubjects(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	var open sync.WaitGroup
	for i := range 50 {
		open.Go(func() {
			_, _ = b.Dispatch(t.Context(), call(schema.NewID(), "echo", i), "test", patience)
		})
	}
	f := stranger(t, srv)
	bustest.Eventually(t, "all calls wait", func() bool {
		state, _ := f.api("STREAM.INFO.JC_WORK", "")["state"].(map[string]any)
		return state["messages"] == 50.0
	})
	state, _ := f.api("STREAM.INFO.JC_WORK", "")["state"].(map[string]any)
	if state["num_subjects"] != 1.0 {
		t.Errorf("%v subjects", state["num_subjects"])
	}
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 16, Tools: toolbox{"echo": echo}})
	open.Wait()
}
