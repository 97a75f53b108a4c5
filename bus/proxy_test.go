package bus_test

import (
	"context"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// behind connects through a proxy of its own.
func behind(t *testing.T, srv *bustest.Servers) (*bus.Bus, *bustest.Proxy) {
	t.Helper()
	p, url := srv.Behind(t)
	return connect(t, srv, func(c *bus.Config) { c.URL = url }), p
}

// trouble is what a network does to the clients behind a proxy in about a second, and then it is well again.
func trouble(p *bustest.Proxy) {
	for _, f := range []func(){
		func() { p.Set(bustest.Fault{Delay: 20 * time.Millisecond}) },
		p.Cut,
		p.Heal,
		func() { p.Set(bustest.Fault{DropDown: true}) },
		p.Heal,
		func() { p.Set(bustest.Fault{DropUp: true}) },
	} {
		f()
		lasts(200 * time.Millisecond)
	}
	p.Heal()
}

// lasts lets a fault be there for a while: its length is the test's input, no event ends it.
func lasts(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}

// TestB12LostAnswers: a reading or a writing whose answer was lost is done again, and a fact written twice is one.
func TestB12LostAnswers(t *testing.T) {
	t.Parallel()
	srv := server(t)
	for name, lost := range map[string]bustest.Fault{"request": {DropUp: true}, "answer": {DropDown: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, proxy := behind(t, srv)
			ctx, cancel := context.WithTimeout(t.Context(), bustest.Patience)
			defer cancel()
			run := schema.NewID()
			seq, err := b.Append(ctx, run, schema.OpenKey(), &schema.Open{}, schema.Key{})
			if err != nil {
				t.Fatal(err)
			}
			proxy.Set(lost)
			read := make(chan error, 1)
			go func() {
				facts, err := b.Facts(ctx, run, seq)
				if err == nil && len(facts) < 1 {
					t.Errorf("facts %+v", facts)
				}
				read <- err
			}()
			wrote := make(chan error, 1)
			go func() {
				_, err := b.Append(ctx, run, schema.CtlKey(1), &schema.Ctl{Act: schema.CtlOwn}, schema.Key{})
				wrote <- err
			}()
			lasts(200 * time.Millisecond)
			proxy.Heal()
			if err := <-read; err != nil {
				t.Errorf("reading: %v", err)
			}
			if err := <-wrote; err != nil {
				t.Errorf("writing: %v", err)
			}
		})
	}
}

// soon waits for a result without the help of the call's deadline.
func soon(t *testing.T, done <-chan schema.Result) schema.Result {
	t.Helper()
	bustest.Eventually(t, "the result is read", func() bool { return len(done) > 0 })
	return <-done
}

// TestB12OwnerCutOff: results that were recorded while the owner heard nothing are read when it is back, and no call that
// has one is published again, though no answer to its publish was heard.
func TestB12OwnerCutOff(t *testing.T) {
	t.Parallel()
	srv := server(t)
	g := newDoor()
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 8, Tools: toolbox{"wait": g.run, "wait" + runOnce: g.run}})
	for name, fault := range map[string]func(*bustest.Proxy){
		"cut":       (*bustest.Proxy).Cut,
		"swallowed": func(p *bustest.Proxy) { p.Set(bustest.Fault{DropDown: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			b, proxy := behind(t, srv)
			run := schema.NewID()
			var results []<-chan schema.Result
			for i := range 6 {
				results = append(results, dispatched(t, b, call(run, []string{"wait", "wait" + runOnce}[i%2], i), "test", time.Hour))
				if got, want := <-g.started, call(run, "", i).String(); got != want {
					t.Fatalf("%s started, want %s", got, want)
				}
			}
			fault(proxy)
			for range results {
				g.open <- struct{}{}
			}
			there := connect(t, srv)
			bustest.Eventually(t, "the results are recorded", func() bool {
				facts, err := there.Facts(t.Context(), run, 0, schema.KindResult)
				return err == nil && len(facts) == len(results)
			})
			proxy.Heal()
			for i, done := range results {
				if r := soon(t, done); !r.OK || r.Index != i || r.Delivery != 1 {
					t.Errorf("call %d: %+v", i, r)
				}
			}
			stranger(t, srv).waitEmpty()
			if len(g.started) > 0 {
				t.Errorf("%s started again", <-g.started)
			}
		})
	}
}

// TestB12SlowReader: a reader that is stuck loses live messages, and the calls of its run get their results all the same.
func TestB12SlowReader(t *testing.T) {
	t.Parallel()
	srv := server(t)
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 8, Tools: toolbox{"echo": echo}})
	b, run := connect(t, srv), schema.NewID()
	heard, open := make(chan struct{}), make(chan struct{})
	stop, err := b.Watch(t.Context(), run, func(schema.Fact) {
		close(heard)
		<-open
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	defer close(open)
	if err := b.Buffer(run, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Append(t.Context(), run, schema.SayKey(1), &schema.Say{Role: schema.RoleUser, Text: "stop here"}, schema.Key{}); err != nil {
		t.Fatal(err)
	}
	<-heard
	var results []<-chan schema.Result
	for i := range 8 {
		results = append(results, dispatched(t, b, call(run, "echo", i), "test", time.Hour))
	}
	for i, done := range results {
		if r := soon(t, done); !r.OK || r.Index != i {
			t.Errorf("call %d: %+v", i, r)
		}
	}
	if n, err := b.Lost(run); err != nil || n == 0 {
		t.Errorf("%d live messages were lost, %v: nothing was slow", n, err)
	}
}

// TestB02HalfOpenWorker: a worker whose connection looks fine and carries nothing loses its idempotent call to another
// one. Its run-once call is not started elsewhere, and is done when the connection is back.
func TestB02HalfOpenWorker(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	w, proxy := behind(t, srv)
	g := newDoor()
	serve(t, w, bus.Worker{Queue: "test", Slots: 2, Tools: toolbox{"work": g.run, "work" + runOnce: g.run}})
	again := dispatched(t, b, call("r", "work", 0), "test", time.Minute)
	once := dispatched(t, b, call("r", "work"+runOnce, 1), "test", time.Minute)
	<-g.started
	<-g.started
	proxy.Set(bustest.Fault{DropUp: true, DropDown: true})
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 2, Tools: toolbox{"work": echo, "work" + runOnce: neverRun(t)}})
	elsewhere := <-again
	if !elsewhere.OK || elsewhere.Delivery != 2 || elsewhere.Worker == w.Instance() {
		t.Errorf("idempotent: %+v, want the other worker's", elsewhere)
	}
	proxy.Heal()
	close(g.open)
	if r := <-once; !r.OK || r.Worker != w.Instance() {
		t.Errorf("run-once: %+v, want the first worker's", r)
	}
	stranger(t, srv).waitEmpty()
	data, err := b.Look(t.Context(), "r", schema.ResultKey(1, 0, "test"))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := schema.DecodeResult(data); err != nil || r.Worker != elsewhere.Worker {
		t.Errorf("recorded: %+v, %v; want what the caller was told", r, err)
	}
}

// TestB10LostAcknowledgements: an owner that heard no answer publishes its call again, and the call starts once.
func TestB10LostAcknowledgements(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	b, proxy := behind(t, srv)
	n := &counter{starts: map[string]int{}}
	published := f.listen("jc.work.test.0")
	f.consumer("test")
	c := call("r", "work"+runOnce, 0)
	proxy.Set(bustest.Fault{DropDown: true})
	done := dispatched(t, b, c, "test", time.Minute)
	f.next(published)
	bustest.Eventually(t, "the answer is lost", proxy.Lossy)
	proxy.Heal()
	f.next(published) // it was published again, since it has no result yet
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 2, Tools: toolbox{c.Tool: n.run}})
	if r := <-done; !r.OK {
		t.Errorf("%+v", r)
	}
	f.waitEmpty()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.starts[c.String()] != 1 {
		t.Errorf("started %v", n.starts)
	}
}
