package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

// town is a server with a model and with tools that keep a ledger; all but the orchestrators is in the test's process.
// The model asks for one call of note, which may run again, and one of book, which may not, in each of its first turns;
// then it answers. What it is told is TURNS and an id of its own, which tells the runs apart.
type town struct {
	office
	t     *testing.T
	srv   *bustest.Servers
	bus   *bus.Bus
	model *httptest.Server
	slow  time.Duration // of every answer and call

	mu    sync.Mutex
	gates map[string]*gate  // by run and place
	runs  map[string]string // by task
	ran   map[string]int    // starts, by call
	wrong []string
}

// gate holds up the first who comes to a place, until it is opened or its guest goes. Places are "ask TURN", before the
// model answers, and "run TOOL TURN", in the middle of a call.
type gate struct {
	reached, opened chan struct{}
	taken           atomic.Bool
}

func (g *gate) hold(ctx context.Context) {
	if g.taken.Swap(true) {
		return
	}
	close(g.reached)
	select {
	case <-g.opened:
	case <-ctx.Done():
	}
}

// newTown starts everything. The model and the tools take their time.
func newTown(t *testing.T, slow time.Duration) *town {
	w := &town{t: t, srv: bustest.Server(t), slow: slow, gates: map[string]*gate{}, runs: map[string]string{}, ran: map[string]int{}}
	w.bus = bustest.Connect(t, w.srv)
	w.model = httptest.NewServer(w)
	t.Cleanup(w.model.Close)
	w.office = newOffice(t, "{provider: openai, model: local, options: {parallelToolCalls: true}}", "tools: [note, book]")
	w.write(t, ".env", "OPENAI_BASE_URL="+w.model.URL+"\n")
	set, err := executor.NewSet("town",
		executor.Tool{Tool: schema.Tool{Name: "note", Description: "Notes.", Parameters: `{"type":"object"}`, Idempotent: true}, Run: w.tool},
		executor.Tool{Tool: schema.Tool{Name: "book", Description: "Books.", Parameters: `{"type":"object"}`}, Run: w.tool},
	)
	if err != nil {
		t.Fatal(err)
	}
	bustest.Serve(t, bustest.Connect(t, w.srv), bus.Worker{Queue: "town", Slots: 64, Tools: set})
	return w
}

// serve starts an orchestrator and waits until it serves.
func (w *town) serve(instance string, more ...string) *harness.Process {
	w.t.Helper()
	p := harness.Start(w.t, w.command(append([]string{"serve", "--nats", w.srv.URL(), "--instance", instance}, more...)...))
	p.Await("orchestrator " + instance)
	return p
}

// start starts a run of so many turns with calls, and with gates at these places.
func (w *town) start(turns int, places ...string) (string, []*gate) {
	w.t.Helper()
	run := schema.NewID()
	task := fmt.Sprintf("%d %s", turns, run)
	var gates []*gate
	w.mu.Lock()
	w.runs[task] = run
	for _, place := range places {
		g := &gate{reached: make(chan struct{}), opened: make(chan struct{})}
		w.gates[run+" "+place] = g
		gates = append(gates, g)
	}
	w.mu.Unlock()
	args, _ := json.Marshal(schema.AgentArgs{Task: task})
	if err := w.bus.StartRun(w.t.Context(), &schema.Call{Run: run, Tool: "helper", Args: schema.JSONText(args)}); err != nil {
		w.t.Fatal(err)
	}
	return run, gates
}

// reached waits until somebody has come to each of the gates.
func (w *town) reached(gates ...*gate) {
	w.t.Helper()
	late := time.NewTimer(60 * time.Second)
	defer late.Stop()
	for i, g := range gates {
		select {
		case <-g.reached:
		case <-late.C:
			w.t.Fatalf("nobody has come to gate %d", i)
		}
	}
}

// stay lets somebody take the time that the town takes, and wait at the gate of the place.
func (w *town) stay(ctx context.Context, run, place string) {
	w.mu.Lock()
	g := w.gates[run+" "+place]
	w.mu.Unlock()
	if g != nil {
		g.hold(ctx)
	}
	timer := time.NewTimer(w.slow)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// has tells whether a fact is there.
func (w *town) has(run string, key schema.Key) bool {
	facts, err := w.bus.Facts(w.t.Context(), run, 0, key.Kind)
	if err != nil {
		return false // the test is over
	}
	for _, f := range facts {
		if f.Key == key {
			return true
		}
	}
	return false
}

func (w *town) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// ServeHTTP is the model.
func (w *town) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	task, turn := "", 1
	for _, m := range body.Messages {
		switch m.Role {
		case "user":
			task = m.Content
		case "assistant":
			turn++
		}
	}
	w.mu.Lock()
	run := w.runs[task]
	w.mu.Unlock()
	if w.has(run, schema.TurnKey(turn)) {
		w.note("turn %d of run %s was written and is asked again", turn, run)
	}
	w.stay(r.Context(), run, fmt.Sprint("ask ", turn))
	turns := 0
	_, _ = fmt.Sscan(task, &turns) // a task without a number has none
	w.answer(rw, turn, turns)
}

func (w *town) answer(rw http.ResponseWriter, turn, turns int) {
	delta, finish := fmt.Sprintf(`{"content":"answer in turn %d"}`, turn), "stop"
	if turn <= turns {
		call := `{"index":%d,"id":"%s","type":"function","function":{"name":"%s","arguments":"{}"}}`
		delta = `{"tool_calls":[` + fmt.Sprintf(call, 0, schema.NewID(), "note") + "," + fmt.Sprintf(call, 1, schema.NewID(), "book") + "]}"
		finish = "tool_calls"
	}
	rw.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(rw, "data: {\"model\":\"local\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
	fmt.Fprintf(rw, "data: {\"model\":\"local\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", finish)
}

// tool is both tools.
func (w *town) tool(ctx context.Context, c *schema.Call) (string, error) {
	w.mu.Lock()
	w.ran[c.String()]++
	times := w.ran[c.String()]
	w.mu.Unlock()
	if w.has(c.Run, c.ResultKey("town")) {
		w.note("call %s has a result and runs again", c)
	}
	if c.Tool == "book" && times > 1 {
		w.note("run-once call %s starts %d times", c, times)
	}
	w.stay(ctx, c.Run, fmt.Sprint("run ", c.Tool, " ", c.Turn))
	return fmt.Sprintf("%s %d", c.Tool, c.Turn), ctx.Err()
}

// closed waits for the end of a run and returns its facts.
func (w *town) closed(run string) []schema.Fact {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 60*time.Second)
	defer cancel()
	var facts []schema.Fact
	for f, err := range w.bus.Follow(ctx, run) {
		if err != nil {
			var keys []string
			for _, f := range facts {
				keys = append(keys, f.Key.String())
			}
			w.t.Fatalf("run %s is not closed: %v; it has %v", run, err, keys)
		}
		facts = append(facts, f)
	}
	return facts
}

// await waits for a fact of a run.
func (w *town) await(run string, key schema.Key) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 60*time.Second)
	defer cancel()
	for f, err := range w.bus.Follow(ctx, run) {
		if err != nil {
			w.t.Fatalf("run %s has no %s: %v", run, key, err)
		}
		if f.Key == key {
			return
		}
	}
	w.t.Fatalf("run %s was closed without %s", run, key)
}

// check looks for everything that must not be in runs of so many turns with calls that have ended.
func (w *town) check(turns int, runs ...string) {
	w.t.Helper()
	for _, run := range runs {
		facts := w.closed(run)
		errs := bustest.Check(facts)
		var end schema.Close
		if err := schema.Decode(facts[len(facts)-1].Data, &end); err != nil {
			errs = append(errs, err)
		}
		if end.State != string(schema.ReasonDone) || end.Turns != turns+1 || end.Calls != 2*turns {
			errs = append(errs, fmt.Errorf("close %+v, want %d turns", end, turns+1))
		}
		for _, f := range facts {
			var r schema.Result
			if f.Key.Kind != schema.KindResult || schema.Decode(f.Data, &r) == nil && r.OK {
				continue
			}
			errs = append(errs, fmt.Errorf("%s: %w", f.Key, r.Error))
		}
		if err := errors.Join(errs...); err != nil {
			w.t.Errorf("run %s: %v", run, err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wrong) > 0 {
		w.t.Error(strings.Join(w.wrong, "\n"))
	}
}

// owner returns the instance that owns a run.
func (w *town) owner(run string) string {
	w.t.Helper()
	facts, err := w.bus.Facts(w.t.Context(), run, 0, schema.KindCtl)
	if err != nil {
		w.t.Fatal(err)
	}
	instance := ""
	for _, f := range facts {
		var c schema.Ctl
		if schema.Decode(f.Data, &c) == nil && c.Act == schema.CtlOwn {
			instance = c.Instance
		}
	}
	return instance
}
