package nodeworker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

// goWorker has the same tools in Go.
type goWorker struct{}

func (goWorker) Tools() []schema.Tool {
	return []schema.Tool{
		{Name: "text_stats", Description: "the same", Parameters: `{"type":"object"}`, Idempotent: true},
		{Name: "counter", Description: "the same", Parameters: `{"type":"object"}`},
	}
}

func (goWorker) Execute(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
	return c.Done("go"), nil
}

func TestNodeAndGoWorkersShareAQueue(t *testing.T) {
	t.Parallel()
	srv, b := setUp(t)
	first, second := start(t, srv, "JETCREW_SLOTS=2"), start(t, srv, "JETCREW_SLOTS=2")
	other, err := bus.Connect(t.Context(), bus.Config{URL: srv.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- other.Serve(ctx, bus.Worker{Queue: queue, Slots: 2, Tools: goWorker{}}) }()

	const calls = 200
	run := schema.NewID()
	results := make([]schema.Result, calls)
	var wg sync.WaitGroup
	for i := range calls {
		tool, args := "text_stats", `{"text":"x"}`
		if i%2 == 1 {
			tool, args = "counter", `{"name":"shared"}`
		}
		wg.Go(func() { results[i] = dispatch(t, b, call(run, tool, i, args), time.Minute) })
	}
	wg.Wait()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	checkShared(t, results, first.instance, second.instance, other.Instance())
	want := map[schema.Kind]int{schema.KindResult: calls, schema.KindBegin: calls / 2}
	got := kinds(t, b, run)
	delete(got, schema.KindBack) // a worker that shuts down may hand back
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// checkShared expects every call done once: a counter in a worker's memory has been raised once for each of its calls.
func checkShared(t *testing.T, results []schema.Result, workers ...string) {
	t.Helper()
	by := map[string]int{}
	counted, highest := map[string]int{}, map[string]int{}
	for i, r := range results {
		if !r.OK || r.Index != i {
			t.Errorf("call %d: %+v", i, r)
		}
		by[r.Worker]++
		var out struct{ Value int }
		if i%2 == 1 && r.Output != "go" && json.Unmarshal([]byte(r.Output), &out) == nil {
			counted[r.Worker]++
			highest[r.Worker] = max(highest[r.Worker], out.Value)
		}
	}
	if diff := cmp.Diff(counted, highest); diff != "" {
		t.Errorf("run-once calls of a worker and the value of its counter differ: %s", diff)
	}
	for _, w := range workers {
		if by[w] == 0 {
			t.Errorf("worker %s did nothing: %v", w, by)
		}
	}
}

// A run-once call that somebody else began is not started again, whether its worker answers or is gone.
func TestCallBegunElsewhere(t *testing.T) {
	t.Parallel()
	srv, b := setUp(t)
	nc, err := nats.Connect(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := nc.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 16)
	running := true // answered once, then no longer
	sub, err := nc.Subscribe("jc.own.alive", func(m *nats.Msg) {
		_ = m.Respond(fmt.Appendf(nil, `{"v":1,"running":%t}`, running))
		running = false
		asked <- struct{}{}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	run := schema.NewID()
	var results []*nats.Subscription
	for i, instance := range []string{"alive", "vanished", "no token!"} {
		result, err := nc.SubscribeSync(fmt.Sprintf("jc.live.%s.result.1.%d.node", run, i))
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, result)
		c := call(run, "counter", i, `{"name":"never"}`)
		data, err := schema.Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		ack, err := js.Publish("jc.work.node.0", data)
		if err != nil {
			t.Fatal(err)
		}
		begin := &schema.Begin{Instance: instance, Delivery: 1, Seq: ack.Sequence}
		if _, err := b.Append(t.Context(), run, schema.BeginKey(1, i, queue), begin, schema.Key{}); err != nil {
			t.Fatal(err)
		}
	}
	start(t, srv)
	for i, result := range results {
		data, err := result.NextMsg(30 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := schema.DecodeResult(data.Data); err != nil || r.OK || r.Error.Type != schema.OutcomeUnknown {
			t.Errorf("call %d: %+v, %v", i, r, err)
		}
	}
	want := map[schema.Kind]int{schema.KindBegin: 3, schema.KindResult: 3, schema.KindBack: 1}
	if diff := cmp.Diff(want, kinds(t, b, run)); diff != "" {
		t.Error(diff)
	}
	if len(asked) != 2 {
		t.Errorf("the living worker was asked %d times, want 2: running, then not", len(asked))
	}
}
