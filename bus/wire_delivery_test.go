package bus_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

// gate is a tool whose calls wait until they are let through.
type gate struct {
	entered chan string // who runs
	open    chan struct{}

	mu     sync.Mutex
	inside map[string]int // by who
	most   map[string]int
	runs   map[string]int // by call
}

func newGate() *gate {
	return &gate{
		entered: make(chan string, 64), open: make(chan struct{}),
		inside: map[string]int{}, most: map[string]int{}, runs: map[string]int{},
	}
}

// tool is the gate's door at one worker.
func (g *gate) tool(who string) func(context.Context, *schema.Call) (schema.Result, *schema.Pending) {
	return func(ctx context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
		g.count(who, c)
		defer g.leave(who)
		g.entered <- who
		select {
		case <-g.open:
			return c.Done(who), nil
		case <-ctx.Done():
			return c.Fail(schema.Cancelled, "ended"), nil
		}
	}
}

func (g *gate) count(who string, c *schema.Call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside[who]++
	g.most[who] = max(g.most[who], g.inside[who])
	g.runs[c.String()]++
}

func (g *gate) leave(who string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside[who]--
}

// check expects every call to have run once and no worker to have held more than slots.
func (g *gate) check(t *testing.T, slots int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for c, n := range g.runs {
		if n != 1 {
			t.Errorf("%s ran %d times", c, n)
		}
	}
	for who, n := range g.most {
		if n > slots {
			t.Errorf("%s held %d calls, it has %d slots", who, n, slots)
		}
	}
}

func (f foreign) consumerNumber(queue, key string) int {
	f.t.Helper()
	n, _ := f.api("CONSUMER.INFO.JC_WORK."+queue, "")[key].(float64)
	return int(n)
}

// TestB01WorkersTakeOnlyTheirFreeSlots: what a worker does not run stays in the stream, so that others get it.
func TestB01WorkersTakeOnlyTheirFreeSlots(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	b := connect(t, srv)
	g := newGate()
	const calls, workers = 10, 2
	var results []<-chan schema.Result
	f.consumer("test")
	stored := f.listen("jc.work.test.0")
	for i := range calls {
		results = append(results, dispatched(t, b, call("r", "gate", i), "test", time.Minute))
		f.next(stored)
	}
	for _, who := range []string{"a", "b"} {
		serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 1, Tools: toolbox{"gate": g.tool(who)}})
	}
	for round := range calls / workers {
		first, second := <-g.entered, <-g.entered
		if first == second {
			t.Errorf("round %d: %s took both", round, first)
		}
		// The server counts an acknowledgement a little after it has given out the next message.
		for late := time.Now().Add(10 * time.Second); f.consumerNumber("test", "num_ack_pending") > workers; {
			if time.Now().After(late) {
				t.Fatalf("round %d: more messages are out than there are slots", round)
			}
		}
		if left := f.consumerNumber("test", "num_pending"); left != calls-workers*(round+1) {
			t.Errorf("round %d: %d messages wait, want %d", round, left, calls-workers*(round+1))
		}
		g.open <- struct{}{}
		g.open <- struct{}{}
	}
	for i, done := range results {
		if r := <-done; !r.OK || r.Delivery != 1 {
			t.Errorf("call %d: %+v", i, r)
		}
	}
	g.check(t, 1)
}

// acks hears every acknowledgement that workers of a queue send.
func (f foreign) acks(queue string) *nats.Subscription {
	return f.listen("$JS.ACK.JC_WORK." + queue + ".>")
}

// ack waits for an acknowledgement that begins with word, and returns its subject.
func (f foreign) ack(sub *nats.Subscription, word string) string {
	f.t.Helper()
	for {
		if m := f.next(sub); strings.HasPrefix(string(m.Data), word) {
			return m.Subject
		}
	}
}

// Waiting in the queue and running are told apart.
func TestQueueTimeAndRunTime(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	b := connect(t, srv)
	g := newGate()
	acks, stored := f.acks("test"), f.listen("jc.work.test.0")
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 1, Tools: toolbox{"gate": g.tool("w")}})
	runs := dispatched(t, b, call("r", "gate", 0), "test", time.Minute)
	<-g.entered
	f.next(stored)
	waits := dispatched(t, b, call("r", "gate", 1), "test", time.Minute)
	f.next(stored)
	f.ack(acks, "+WPI") // up to 2 s later
	f.ack(acks, "+WPI") // 2 s later
	close(g.open)
	first, second := <-runs, <-waits
	if ran := first.EndedMS - first.StartedMS; ran < 1900 || first.QueuedMS > 1000 {
		t.Errorf("the first call was held by its tool: queued %d ms, ran %d ms", first.QueuedMS, ran)
	}
	if ran := second.EndedMS - second.StartedMS; second.QueuedMS < 1900 || ran > 1000 {
		t.Errorf("the second call waited for a slot: queued %d ms, ran %d ms", second.QueuedMS, ran)
	}
	if second.StartedMS < first.EndedMS-1 {
		t.Errorf("the second call started at %d, before the first ended at %d", second.StartedMS, first.EndedMS)
	}
}

// A second delivery of a call that runs here does not start it again, nor does a copy of it.
func TestSecondDeliveryToTheSameWorker(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"gate", "gate" + runOnce} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			srv := server(t)
			f := stranger(t, srv)
			b, w := connect(t, srv), connect(t, srv)
			g := newGate()
			acks, backs, work := f.acks("test"), f.listen("jc.live.r.back.>"), f.listen("jc.work.test.0")
			serve(t, w, bus.Worker{Queue: "test", Slots: 3, Tools: toolbox{tool: g.tool("w")}})
			done := dispatched(t, b, call("r", tool, 0), "test", time.Minute)
			<-g.entered
			f.say(f.ack(acks, "+WPI"), []byte("-NAK")) // the server offers it again
			back := f.next(backs)
			if back.Subject != "jc.live.r.back.1.0.test.1.2" {
				t.Errorf("given back as %s", back.Subject)
			}
			var why schema.Back
			if err := schema.Decode(back.Data, &why); err != nil || why.Instance != w.Instance() {
				t.Errorf("%+v, %v", why, err)
			}
			f.ack(acks, `-NAK {"delay"`)
			copied := f.next(work)
			f.store(copied.Subject, copied.Data)
			if subject := f.ack(acks, `-NAK {"delay"`); !strings.Contains(subject, ".1.2.") { // first delivery of sequence 2
				t.Errorf("given back is %s, want the copy", subject)
			}
			close(g.open)
			if r := <-done; !r.OK || r.Output != "w" || r.Delivery != 1 {
				t.Errorf("%+v", r)
			}
			g.check(t, 3)
		})
	}
}

// A run-once call that is delivered to a second worker while the first runs it: ask, give back, do not start.
func TestRunOnceDeliveredElsewhereWhileItRuns(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	b, first, second := connect(t, srv), connect(t, srv), connect(t, srv)
	g := newGate()
	acks, backs := f.acks("test"), f.listen("jc.live.r.back.>")
	asked := f.listen("jc.own." + first.Instance())
	serve(t, first, bus.Worker{Queue: "test", Slots: 1, Tools: toolbox{"gate" + runOnce: g.tool("first")}})
	done := dispatched(t, b, call("r", "gate"+runOnce, 0), "test", time.Minute)
	<-g.entered
	// The first has no free slot, so the second gets it.
	serve(t, second, bus.Worker{Queue: "test", Slots: 1, Tools: toolbox{"gate" + runOnce: g.tool("second")}})
	f.say(f.ack(acks, "+WPI"), []byte("-NAK"))
	var why schema.Back
	if err := schema.Decode(f.next(backs).Data, &why); err != nil || why.Instance != second.Instance() {
		t.Errorf("%+v, %v", why, err)
	}
	f.ack(acks, `-NAK {"delay"`)
	var q bus.OwnQuery
	if err := schema.Decode(f.next(asked).Data, &q); err != nil || q.Run != "r" || q.Turn != 1 || q.Index != 0 || q.Seq != 1 {
		t.Errorf("asked %+v, %v", q, err)
	}
	close(g.open)
	if r := <-done; !r.OK || r.Output != "first" {
		t.Errorf("%+v", r)
	}
	g.check(t, 1)
}

// A call of a tool that nobody here has goes to a worker that has it, without losing an attempt.
func TestToolThatThisWorkerLacks(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	b, without := connect(t, srv), connect(t, srv)
	backs := f.listen("jc.live.r.back.>")
	stop := serve(t, without, bus.Worker{Queue: "test", Tools: toolbox{"other": neverRun(t)}})
	done := dispatched(t, b, call("r", "echo"+runOnce, 0), "test", time.Minute)
	if m := f.next(backs); m.Subject != "jc.live.r.back.1.0.test.1.1" {
		t.Errorf("given back as %s", m.Subject)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Tools: toolbox{"echo" + runOnce: echo}})
	if r := <-done; !r.OK || r.Delivery < 2 {
		t.Errorf("%+v", r)
	}
}
