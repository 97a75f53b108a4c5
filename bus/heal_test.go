package bus_test

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/bus/embedded"
	"github.com/jetcrew/jetcrew/schema"
)

// restartable is a server that keeps its port and its store over a restart.
type restartable struct {
	t   *testing.T
	cfg embedded.Config
	srv *embedded.Server
}

func newRestartable(t *testing.T) *restartable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	n, _ := strconv.Atoi(port)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r := &restartable{t: t, cfg: embedded.Config{Dir: t.TempDir(), Port: n}}
	r.start()
	t.Cleanup(func() { r.srv.Stop() })
	return r
}

func (r *restartable) start() {
	r.t.Helper()
	srv, err := embedded.Start(r.cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.srv = srv
}

func (r *restartable) at() *bustest.Servers { return bustest.At(r.srv.URL()) }

// restart stops the server, lets what happens in the meantime happen, and starts it again.
func (r *restartable) restart(meanwhile func()) {
	r.t.Helper()
	r.srv.Stop()
	meanwhile()
	r.start()
}

// door is a tool that says when it has started and waits until it is opened.
type door struct {
	started chan string
	open    chan struct{}
}

func newDoor() *door { return &door{started: make(chan string, 100), open: make(chan struct{})} }

func (g *door) run(ctx context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
	g.started <- c.String()
	select {
	case <-g.open:
		return c.Done("through the door"), nil
	case <-ctx.Done():
		return c.Fail(schema.Cancelled, context.Cause(ctx).Error()), nil
	}
}

// TestB12B21ServerRestart restarts the server while calls run on workers and while their results are due. No call is
// lost and none has two results; calls, catalog and new work go on.
func TestB12B21ServerRestart(t *testing.T) {
	t.Parallel()
	srv := newRestartable(t)
	b, w := connect(t, srv.at()), connect(t, srv.at())
	g := newDoor()
	bustest.Serve(t, w, bus.Worker{Queue: "test", Slots: 8, Tools: bustest.Tools{"gate": g.run, "gate!": g.run, "echo": bustest.Echo}})
	if err := b.Select("echo").Wait(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	run := schema.NewID()
	results := make([]schema.Result, 6)
	var calls sync.WaitGroup
	for i := range results {
		tool := []string{"gate", "gate!"}[i%2]
		calls.Go(func() {
			var err error
			if results[i], err = b.Dispatch(t.Context(), bustest.Call(run, tool, i), "test", time.Minute); err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	for range results {
		<-g.started
	}
	srv.restart(func() { close(g.open) }) // the tools end while there is no server
	calls.Wait()
	for i, r := range results {
		if !r.OK {
			t.Errorf("call %d: %+v", i, r)
		}
	}
	r, err := b.Dispatch(t.Context(), bustest.Call(run, "echo", len(results)), "test", time.Minute)
	if err != nil || !r.OK {
		t.Errorf("after the restart: %+v, %v", r, err)
	}
	facts, err := b.Facts(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[schema.Key]int{}
	for _, f := range facts {
		if f.Key.Kind == schema.KindResult {
			found[f.Key]++
		}
	}
	if len(found) != len(results)+1 {
		t.Errorf("results: %v", found)
	}
}

// TestB13ConsumerDeleted deletes the consumer under a live worker, which makes it again and goes on.
func TestB13ConsumerDeleted(t *testing.T) {
	t.Parallel()
	srv := bustest.Server(t)
	b := bustest.Connect(t, srv)
	bustest.Serve(t, bustest.Connect(t, srv), bus.Worker{Queue: "test", Slots: 2, Tools: bustest.Tools{"echo": bustest.Echo}})
	run := schema.NewID()
	for i := range 3 {
		if r, err := b.Dispatch(t.Context(), bustest.Call(run, "echo", i), "test", time.Minute); err != nil || !r.OK {
			t.Fatalf("call %d: %+v, %v", i, r, err)
		}
		deleteConsumer(t, srv, "JC_WORK", "test")
	}
}

func deleteConsumer(t *testing.T, srv *bustest.Servers, stream, consumer string) {
	t.Helper()
	if err := streams(t, srv).DeleteConsumer(t.Context(), stream, consumer); err != nil {
		t.Fatal(err)
	}
}

// TestB02WorkerGone ends a worker's connection in the middle of its calls: another worker runs the idempotent one
// again; the run-once one is not started twice and its outcome is unknown.
func TestB02WorkerGone(t *testing.T) {
	t.Parallel()
	srv := bustest.Server(t)
	b := bustest.Connect(t, srv)
	g := newDoor()
	defer close(g.open)
	gone := connect(t, srv)
	ended := make(chan error, 1)
	go func() {
		ended <- gone.Serve(t.Context(), bus.Worker{Queue: "test", Slots: 2, Tools: bustest.Tools{"work": g.run, "work!": g.run}})
	}()
	run := schema.NewID()
	results := make([]schema.Result, 2)
	var calls sync.WaitGroup
	for i, tool := range []string{"work", "work!"} {
		calls.Go(func() {
			var err error
			if results[i], err = b.Dispatch(t.Context(), bustest.Call(run, tool, i), "test", time.Minute); err != nil {
				t.Errorf("%s: %v", tool, err)
			}
		})
	}
	<-g.started
	<-g.started
	gone.Close()
	if err := <-ended; err == nil {
		t.Error("a worker without its bus went on")
	}
	twice := func(ctx context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
		t.Error("a run-once call was started twice")
		return bustest.Echo(ctx, c)
	}
	bustest.Serve(t, bustest.Connect(t, srv), bus.Worker{Queue: "test", Slots: 2, Tools: bustest.Tools{"work": bustest.Echo, "work!": twice}})
	calls.Wait()
	if r := results[0]; !r.OK || r.Delivery != 2 {
		t.Errorf("idempotent: %+v, want the second delivery's", r)
	}
	if r := results[1]; r.OK || r.Error.Type != schema.OutcomeUnknown {
		t.Errorf("run-once: %+v, want OutcomeUnknown", r)
	}
}

// TestB20Drain ends a worker with calls running: they finish, nothing new starts, and it returns without an error.
func TestB20Drain(t *testing.T) {
	t.Parallel()
	srv := bustest.Server(t)
	b := bustest.Connect(t, srv)
	g := newDoor()
	stop := bustest.Serve(t, bustest.Connect(t, srv), bus.Worker{Queue: "test", Slots: 2, Tools: bustest.Tools{"gate": g.run, "gate!": g.run}})
	run := schema.NewID()
	results := make([]schema.Result, 4)
	var calls sync.WaitGroup
	for i := range results {
		tool := []string{"gate", "gate!"}[i%2]
		calls.Go(func() { results[i], _ = b.Dispatch(t.Context(), bustest.Call(run, tool, i), "test", time.Minute) })
	}
	<-g.started
	<-g.started
	drained := make(chan error, 1)
	go func() { drained <- stop() }()
	select {
	case err := <-drained:
		t.Fatalf("drained with calls running: %v", err)
	case <-g.started:
		t.Fatal("a call was started while draining")
	case <-time.After(300 * time.Millisecond): // nothing may happen, and there is no event for that
	}
	close(g.open)
	if err := <-drained; err != nil {
		t.Error(err)
	}
	bustest.Serve(t, bustest.Connect(t, srv), bus.Worker{Queue: "test", Slots: 2, Tools: bustest.Tools{"gate": bustest.Echo, "gate!": bustest.Echo}})
	calls.Wait()
	for i, r := range results {
		if !r.OK {
			t.Errorf("call %d: %+v", i, r)
		}
	}
}

// TestB20DrainCancels ends a worker whose calls do not end by themselves: a run-once one is told so, an idempotent
// one runs elsewhere.
func TestB20DrainCancels(t *testing.T) {
	t.Parallel()
	srv := bustest.Server(t)
	b := bustest.Connect(t, srv)
	g := newDoor()
	defer close(g.open)
	stop := bustest.Serve(t, bustest.Connect(t, srv), bus.Worker{
		Queue: "test", Slots: 2, Drain: 50 * time.Millisecond, Tools: bustest.Tools{"gate": g.run, "gate!": g.run},
	})
	run := schema.NewID()
	results := make([]schema.Result, 2)
	var calls sync.WaitGroup
	for i := range results {
		tool := []string{"gate", "gate!"}[i]
		calls.Go(func() { results[i], _ = b.Dispatch(t.Context(), bustest.Call(run, tool, i), "test", time.Minute) })
	}
	<-g.started
	<-g.started
	if err := stop(); err != nil {
		t.Error(err)
	}
	bustest.Serve(t, bustest.Connect(t, srv), bus.Worker{Queue: "test", Slots: 2, Tools: bustest.Tools{"gate": bustest.Echo, "gate!": bustest.Echo}})
	calls.Wait()
	if !results[0].OK || results[0].Delivery != 2 {
		t.Errorf("idempotent: %+v, want the second delivery's", results[0])
	}
	if results[1].OK || results[1].Error.Type != schema.Cancelled {
		t.Errorf("run-once: %+v, want Cancelled", results[1])
	}
}

// TestB18CatalogAfterRestart: the catalog goes on after the server was away.
func TestB18CatalogAfterRestart(t *testing.T) {
	t.Parallel()
	srv := newRestartable(t)
	b := connect(t, srv.at())
	bustest.Serve(t, connect(t, srv.at()), bus.Worker{Queue: "one", Tools: bustest.Tools{"first": bustest.Echo}})
	if err := b.Select("first").Wait(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	srv.restart(func() {})
	bustest.Serve(t, connect(t, srv.at()), bus.Worker{Queue: "two", Tools: bustest.Tools{"second": bustest.Echo}})
	if err := b.Select("first", "second").Wait(t.Context(), 20*time.Second); err != nil {
		t.Error(err)
	}
}

// TestC14NoHeartbeat: a running call needs no entry in the catalog, and a worker that lost its own comes back into it.
func TestC14NoHeartbeat(t *testing.T) {
	t.Parallel()
	srv := bustest.Server(t)
	f := stranger(t, srv)
	b, w := bustest.Connect(t, srv), bustest.Connect(t, srv)
	g := newDoor()
	bustest.Serve(t, w, bus.Worker{Queue: "test", Slots: 2, Tools: bustest.Tools{"gate": g.run, "gate!": g.run}})
	bustest.Eventually(t, "the worker is seen", func() bool { return len(b.Catalog().Workers()) == 1 })
	run := schema.NewID()
	idempotent, once := dispatched(t, b, bustest.Call(run, "gate", 0), "test", time.Minute), dispatched(t, b, bustest.Call(run, "gate!", 1), "test", time.Minute)
	<-g.started
	<-g.started
	before, _ := b.Catalog().Changes()
	f.store("$KV.jc_catalog.test."+w.Instance(), nil, "KV-Operation", "DEL")
	bustest.Eventually(t, "the worker is forgotten and seen again", func() bool {
		now, _ := b.Catalog().Changes()
		return now >= before+2 && len(b.Catalog().Workers()) == 1
	})
	close(g.open)
	for _, done := range []<-chan schema.Result{idempotent, once} {
		if r := <-done; !r.OK || r.Delivery != 1 {
			t.Errorf("%+v", r)
		}
	}
}
