package bus_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// slowModel asks for one call, then answers; gate holds up its second turn.
type slowModel struct {
	asked [3]atomic.Int64
	gate  func(ctx context.Context) error
}

func (m *slowModel) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	m.asked[req.Turn].Add(1)
	if req.Turn == 1 {
		return &model.Response{Calls: []schema.RawCall{{ID: "a", Name: "book", Args: `{"seat":"4C"}`}}, Finish: schema.FinishCalls}, nil
	}
	if m.gate != nil {
		if err := m.gate(ctx); err != nil {
			return nil, err
		}
	}
	return &model.Response{Text: "done", Finish: schema.FinishStop}, nil
}

// somebody may do everything.
func somebody() schema.Principal {
	return schema.Principal{ID: "tester", Scopes: []string{"tool:*", "tool:agents/*"}}
}

// anyAgent finds an agent by every name.
func anyAgent(name string) (schema.AgentSpec, bool) {
	return schema.AgentSpec{ID: name, Limits: schema.DefaultLimits(), Parallel: schema.Parallel{Calls: true}}, true
}

// newHost works on runs of any agent with a model and tools, unless change says otherwise.
func newHost(t *testing.T, b *bus.Bus, m loop.Model, tools loop.Registry, change ...func(*loop.HostConfig)) *loop.Host {
	t.Helper()
	cfg := loop.HostConfig{
		Config: loop.Config{Bus: b, Instance: b.Instance(), Principal: somebody()}, Find: anyAgent,
		Equip: func(context.Context, schema.AgentSpec) (loop.Model, loop.Registry, error) { return m, tools, nil },
	}
	for _, c := range change {
		c(&cfg)
	}
	h, err := loop.NewHost(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// hosted serves the queue agents on b until the test ends or stop is called.
func hosted(t *testing.T, b *bus.Bus, h bus.Hosting) (stop func()) {
	t.Helper()
	h.Drain = time.Second
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Host(ctx, h) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, nats.ErrConnectionClosed) { // the test may have closed the bus
			t.Errorf("host: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// host serves agents with the tools that workers have.
func host(t *testing.T, b *bus.Bus, m loop.Model) (stop func()) {
	t.Helper()
	return hosted(t, b, bus.Hosting{Slots: 4, Host: newHost(t, b, m, b.Select("*"))})
}

func waitClosed(t *testing.T, b *bus.Bus, run string, within time.Duration) []schema.Fact {
	t.Helper()
	closed := make(chan struct{}, 8)
	stop, err := b.Watch(t.Context(), run, func(f schema.Fact) {
		if f.Key.Kind == schema.KindClose {
			closed <- struct{}{}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	late, again := time.NewTimer(within), time.NewTicker(time.Second)
	defer late.Stop()
	defer again.Stop()
	for {
		facts, err := b.Facts(t.Context(), run, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(facts) > 0 && facts[len(facts)-1].Key == schema.CloseKey() {
			return facts
		}
		select {
		case <-closed:
		case <-again.C: // the servers of a cluster learn one after another who listens
		case <-late.C:
			t.Fatalf("run is not closed within %v: %+v", within, facts)
		}
	}
}

func startRun(t *testing.T, b *bus.Bus) string {
	t.Helper()
	run := schema.NewID()
	if err := b.StartRun(t.Context(), &schema.Call{Run: run, Tool: "helper", Args: `{"task":"go"}`}); err != nil {
		t.Fatal(err)
	}
	return run
}

// TestHostTakesOverALostRun: the owner vanishes while it asks the model for its second turn; another one finishes the
// run within 10 s, without asking for the first turn or running its call again.
func TestHostTakesOverALostRun(t *testing.T) {
	t.Parallel()
	srv := server(t)
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 8, Tools: mixedTools(t)})
	b, first, second := connect(t, srv), connect(t, srv), connect(t, srv)
	if err := first.Select("book").Wait(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := second.Select("book").Wait(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	stuck, released, m2 := make(chan struct{}), make(chan struct{}), &slowModel{}
	m1 := &slowModel{gate: func(ctx context.Context) error {
		close(stuck)
		<-released // deaf to everything, as a process that is gone
		return ctx.Err()
	}}
	stop := host(t, first, m1)
	run := startRun(t, b)
	<-stuck
	lost := time.Now()
	go first.Close() // it waits for the model; to all others this process is gone
	host(t, second, m2)
	facts := waitClosed(t, b, run, 10*time.Second)
	t.Logf("taken over and finished after %v", time.Since(lost))
	close(released)
	stop()
	for _, err := range bustest.Check(facts) {
		t.Error(err)
	}
	if m1.asked[1].Load() != 1 || m2.asked[1].Load() != 0 || m2.asked[2].Load() != 1 {
		t.Errorf("model requests: first owner %d, %d; second %d, %d", m1.asked[1].Load(), m1.asked[2].Load(), m2.asked[1].Load(), m2.asked[2].Load())
	}
}

// TestHostHandsBack: an owner that ends hands its run back at once.
func TestHostHandsBack(t *testing.T) {
	t.Parallel()
	srv := server(t)
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 8, Tools: mixedTools(t)})
	b, first, second := connect(t, srv), connect(t, srv), connect(t, srv)
	for _, x := range []*bus.Bus{first, second} {
		if err := x.Select("book").Wait(t.Context(), 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	stuck := make(chan struct{})
	stop := host(t, first, &slowModel{gate: func(ctx context.Context) error {
		close(stuck)
		<-ctx.Done()
		return ctx.Err()
	}})
	run := startRun(t, b)
	<-stuck
	stop()
	m := &slowModel{}
	host(t, second, m)
	for _, err := range bustest.Check(waitClosed(t, b, run, 4*time.Second)) {
		t.Error(err)
	}
	if m.asked[1].Load() != 0 {
		t.Error("a written turn was asked again")
	}
}

// reached waits for a model that gets stuck.
func reached(t *testing.T, stuck <-chan struct{}) {
	t.Helper()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	select {
	case <-stuck:
	case <-late.C:
		t.Fatal("the model is not asked")
	}
}

// TestHandedBackOften: owners that hand a run back are not lost ones, however many come without a step forward.
func TestHandedBackOften(t *testing.T) {
	t.Parallel()
	srv := server(t)
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 8, Tools: mixedTools(t)})
	b := connect(t, srv)
	run := ""
	for range 5 {
		own, stuck := connect(t, srv), make(chan struct{})
		if err := own.Select("book").Wait(t.Context(), 10*time.Second); err != nil {
			t.Fatal(err)
		}
		stop := host(t, own, &slowModel{gate: func(ctx context.Context) error {
			close(stuck)
			<-ctx.Done()
			return ctx.Err()
		}})
		if run == "" {
			run = startRun(t, b)
		}
		reached(t, stuck)
		stop()
	}
	host(t, b, &slowModel{})
	facts := waitClosed(t, b, run, 10*time.Second)
	for _, err := range bustest.Check(facts) {
		t.Error(err)
	}
	var end schema.Close
	if err := schema.Decode(facts[len(facts)-1].Data, &end); err != nil || end.State != string(schema.ReasonDone) {
		t.Errorf("close %+v, %v", end, err)
	}
}

// shaky panics at the first run that it takes.
type shaky struct{ taken chan schema.RunMessage }

func (s shaky) Take(_ context.Context, m schema.RunMessage) schema.Taken {
	s.taken <- m
	if m.Delivery == 1 {
		panic("not today")
	}
	return schema.Taken{Act: schema.TakenDone}
}

// TestHostPanics: a host that panics has lost the run, which comes again; the log says so at once.
func TestHostPanics(t *testing.T) {
	t.Parallel()
	srv := server(t)
	var log bytes.Buffer // read when the host has taken the run again
	b := connect(t, srv, func(c *bus.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
	})
	h := shaky{make(chan schema.RunMessage)}
	stop := hosted(t, b, bus.Hosting{Host: h})
	if err := connect(t, srv).StartRun(t.Context(), &schema.Call{Run: schema.NewID(), Tool: "x", Args: `{"task":"go"}`}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case <-h.taken:
		case <-time.After(20 * time.Second):
			t.Fatal("it does not come again")
		}
	}
	stop()
	if !strings.Contains(log.String(), "not today") {
		t.Errorf("log %q", log.String())
	}
}
