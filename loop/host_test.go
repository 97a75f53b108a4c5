package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

var errKilled = errors.New("the owner is killed")

// mortal is the bus as an owner sees it that dies after some steps. What a killed owner does reaches nobody; the
// workers live on.
type mortal struct {
	*looptest.Bus
	mu    sync.Mutex
	left  int  // steps until the kill
	after bool // a call under way at the kill is recorded
}

func (m *mortal) step() (left int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left--
	return m.left
}

func (m *mortal) Append(ctx context.Context, run string, key schema.Key, p schema.Encodable, unless schema.Key) (uint64, error) {
	if m.step() < 0 {
		return 0, errKilled
	}
	return m.Bus.Append(ctx, run, key, p, unless)
}

func (m *mortal) Start(calls ...schema.Dispatch) {
	for _, d := range calls {
		m.start(d)
	}
}

func (m *mortal) start(d schema.Dispatch) {
	left := m.step()
	if left < -1 || left == -1 && !m.after {
		d.Done(schema.Result{}, errKilled)
		return
	}
	var r schema.Result
	if m.Fact(d.Call.Run, d.Call.ResultKey(d.Queue), &r) {
		d.Done(r, nil)
		return
	}
	done := d.Done
	d.Done = func(r schema.Result, err error) {
		if left < 0 {
			err = errKilled
		}
		done(r, err)
	}
	m.Bus.Start(d)
}

// hosting is a fleet in memory with an agent whose turns depend on nothing but the prompt.
type hosting struct {
	*rig
	mu      sync.Mutex
	asked   map[int]int // model requests by turn
	ran     map[string]int
	answers map[int]*model.Response // by turn
}

func newHosting(answers map[int]*model.Response) *hosting {
	h := &hosting{rig: newRig(), asked: map[int]int{}, ran: map[string]int{}, answers: answers}
	h.cfg.Agent.Parallel.Calls = true
	h.tool("count", func(_ context.Context, c *schema.Call) (string, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ran[c.String()]++
		return fmt.Sprintf("%d.%d", c.Turn, c.Index), nil
	})
	return h
}

func (h *hosting) Generate(_ context.Context, req *model.Request) (*model.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked[req.Turn]++
	if r := h.answers[req.Turn]; r != nil {
		c := *r
		return &c, nil
	}
	return &model.Response{Text: fmt.Sprintf("answer after %d messages", len(req.Messages)), Finish: schema.FinishStop}, nil
}

// host returns an owner that is killed after so many steps.
func (h *hosting) host(t *testing.T, steps int, after bool) *loop.Host {
	t.Helper()
	cfg := loop.HostConfig{
		Config: loop.Config{Bus: &mortal{Bus: h.bus, left: steps, after: after}, Principal: somebody()},
		Find:   func(name string) (schema.AgentSpec, bool) { return h.cfg.Agent, name == "tester" },
		Equip: func(context.Context, schema.AgentSpec) (loop.Model, loop.Registry, error) {
			return h, h.bus, nil
		},
	}
	host, err := loop.NewHost(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return host
}

const forever = 1 << 30

func starter(run, args string) schema.RunMessage {
	return schema.RunMessage{Run: run, Seq: 7, Delivery: 1, Call: &schema.Call{Run: run, Tool: "tester", Args: schema.JSONText(args)}}
}

func (h *hosting) memory(t *testing.T, run string) *memory.Run {
	t.Helper()
	facts, err := h.bus.Facts(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	m := memory.New()
	for _, f := range facts {
		if err := m.Apply(f); err != nil {
			t.Error(err)
		}
	}
	return m
}

// TestD12KilledAtEveryStep kills the owner after each of its steps: the next one goes on, and the memory is that of an
// undisturbed run. No written turn is asked again, no call with a result runs again.
func TestD12KilledAtEveryStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers := map[int]*model.Response{
			1: {Text: "let me see", Calls: raw("count", "nobody", "count"), Finish: schema.FinishCalls},
			2: {Calls: raw("count", "fail"), Finish: schema.FinishCalls},
		}
		whole := newHosting(answers)
		if got := whole.host(t, forever, false).Take(t.Context(), starter("r", `{"task":"go"}`)); got.Act != schema.TakenDone {
			t.Fatalf("%+v", got)
		}
		want := whole.memory(t, "r")
		kills := 0
		for _, after := range []bool{false, true} {
			for steps := 0; ; steps++ {
				h := newHosting(answers)
				first := h.host(t, steps, after).Take(t.Context(), starter("r", `{"task":"go"}`))
				if first.Act == schema.TakenDone {
					break
				}
				kills++
				written := h.memory(t, "r").Turns()
				asked := map[int]int{}
				for n, times := range h.asked {
					asked[n] = times
				}
				second := h.host(t, forever, false).Take(t.Context(), starter("r", `{"task":"go"}`))
				if second.Act != schema.TakenDone {
					t.Fatalf("after %d steps: %+v, then %+v; facts %v", steps, first, second, h.bus.Keys("r"))
				}
				got := h.memory(t, "r")
				if diff := cmp.Diff(want.Messages(), got.Messages()); diff != "" || got.Closed() == nil || got.Closed().State != "done" || got.Answers() != 1 {
					t.Errorf("after %d steps: close %+v, %s", steps, got.Closed(), diff)
				}
				for n := 1; n <= written; n++ {
					if h.asked[n] != asked[n] {
						t.Errorf("after %d steps: turn %d was written and is asked again", steps, n)
					}
				}
				for call, times := range h.ran {
					if times != 1 {
						t.Errorf("after %d steps: call %s ran %d times", steps, call, times)
					}
				}
			}
		}
		if kills < 20 {
			t.Errorf("only %d kills", kills)
		}
	})
}

// TestTakeoverCountsOn: steps and repetitions count over owners.
func TestTakeoverCountsOn(t *testing.T) {
	t.Parallel()
	for _, reason := range []schema.Reason{schema.ReasonMaxSteps, schema.ReasonRepeat} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			for steps := range 40 {
				answers := map[int]*model.Response{}
				for n := 1; n <= 3; n++ {
					tool := "ok"
					if reason == schema.ReasonMaxSteps {
						tool = "count"
					}
					answers[n] = &model.Response{Calls: raw(tool), Finish: schema.FinishCalls}
				}
				h := newHosting(answers)
				h.cfg.Agent.Limits.MaxSteps = 3
				if reason == schema.ReasonRepeat {
					h.cfg.Agent.Limits.MaxSteps = 0
				}
				if got := h.host(t, steps, true).Take(t.Context(), starter("r", `{"task":"go"}`)); got.Act == schema.TakenDone {
					break
				}
				h.host(t, forever, false).Take(t.Context(), starter("r", `{"task":"go"}`))
				m := h.memory(t, "r")
				if a := m.Answer(1); a == nil || a.Reason != reason || m.Turns() != 4 || m.Closed() == nil {
					t.Errorf("killed after %d steps: answer %+v after %d turns", steps, a, m.Turns())
				}
			}
		})
	}
}

// TestD35StoppedWhileNobodyOwns: a stop that stands when the run is taken over settles the open calls and asks no model.
func TestD35StoppedWhileNobodyOwns(t *testing.T) {
	t.Parallel()
	h := newHosting(map[int]*model.Response{1: {Calls: raw("count", "count"), Finish: schema.FinishCalls}})
	h.host(t, 4, false).Take(t.Context(), starter("r", `{"task":"go"}`)) // open, own, say, turn
	if keys := h.bus.Keys("r"); keys[len(keys)-1] != "turn.1" {
		t.Fatalf("facts %v", keys)
	}
	h.append(t, "r", schema.CtlKey(2), &schema.Ctl{Act: schema.CtlStop, Why: "enough"})
	if got := h.host(t, forever, false).Take(t.Context(), starter("r", `{"task":"go"}`)); got.Act != schema.TakenDone {
		t.Errorf("%+v", got)
	}
	m := h.memory(t, "r")
	if m.Closed() == nil || m.Closed().State != "stopped" || len(m.OpenCalls(1)) > 0 || h.asked[2] > 0 {
		t.Errorf("close %+v, facts %v", m.Closed(), h.bus.Keys("r"))
	}
}

// TestTooManyLostOwners: a run that takes one owner after the other with it is given up.
func TestTooManyLostOwners(t *testing.T) {
	t.Parallel()
	h := newHosting(nil)
	for _, steps := range []int{2, 1, 1} { // open and own; own; own
		h.host(t, steps, false).Take(t.Context(), starter("r", `{"task":"go"}`))
	}
	got := h.host(t, forever, false).Take(t.Context(), starter("r", `{"task":"go"}`))
	m := h.memory(t, "r")
	if got.Act != schema.TakenDead || m.Closed() == nil || m.Closed().State != "stopped" || len(h.asked) > 0 {
		t.Errorf("%+v, facts %v", got, h.bus.Keys("r"))
	}
}

// TestKeptRunGoesOn: a run that is kept open is left without an owner and goes on with the next message.
func TestKeptRunGoesOn(t *testing.T) {
	t.Parallel()
	h := newHosting(nil)
	host := h.host(t, forever, false)
	host.Take(t.Context(), starter("r", `{"task":"go","keep":true}`))
	h.append(t, "r", schema.SayKey(2), &schema.Say{Role: schema.RoleUser, Text: "and now?"})
	if got := host.Take(t.Context(), schema.RunMessage{Run: "r", Seq: 9}); got.Act != schema.TakenParked || got.At.IsZero() {
		t.Errorf("%+v", got)
	}
	if m := h.memory(t, "r"); m.Answers() != 2 || m.Answer(2).Say != 2 || m.Closed() != nil {
		t.Errorf("facts %v", h.bus.Keys("r"))
	}
}

// TestHostRefuses: what this host cannot do leaves no fact.
func TestHostRefuses(t *testing.T) {
	t.Parallel()
	h := newHosting(nil)
	host := h.host(t, forever, false)
	unknown := starter("u", `{"task":"go"}`)
	unknown.Call.Tool = "stranger"
	for want, m := range map[schema.TakenAct]schema.RunMessage{
		schema.TakenCannot: unknown, schema.TakenDead: starter("d", `{}`), schema.TakenBusy: {Run: "w", Seq: 1},
	} {
		if got := host.Take(t.Context(), m); got.Act != want || len(h.bus.Keys(m.Run)) > 0 {
			t.Errorf("%+v, want act %d; facts %v", got, want, h.bus.Keys(m.Run))
		}
	}
}

// TestStopOfARunThatNobodyServes: a stop ends a run that no orchestrator can open, but those who may serve its agent come first.
func TestStopOfARunThatNobodyServes(t *testing.T) {
	t.Parallel()
	h := newHosting(nil)
	host := h.host(t, forever, false)
	m := starter("u", `{"task":"go"}`)
	m.Call.Tool, m.Delivery = "stranger", 100
	if got := host.Take(t.Context(), m); got.Act != schema.TakenCannot {
		t.Errorf("%+v, want it kept for who serves the agent", got)
	}
	h.append(t, "u", schema.CtlKey(1), &schema.Ctl{Act: schema.CtlStop, Why: "enough"})
	for _, m.Delivery = range []uint64{1, 10} {
		if got := host.Take(t.Context(), m); got.Act != schema.TakenCannot {
			t.Errorf("delivery %d: %+v", m.Delivery, got)
		}
	}
	m.Delivery = 11
	if got := host.Take(t.Context(), m); got.Act != schema.TakenDone {
		t.Errorf("%+v", got)
	}
	if run := h.memory(t, "u"); run.Closed() == nil || run.Closed().State != "stopped" {
		t.Errorf("closed as %+v: what is not closed never expires", run.Closed())
	}
}

// TestHandBack: the end of the host's context hands a run back without stopping it; another goes on.
func TestHandBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHosting(map[int]*model.Response{1: {Calls: []schema.RawCall{waitFor("3s")}, Finish: schema.FinishCalls}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got := h.host(t, forever, false).Take(ctx, starter("r", `{"task":"go"}`)); got.Act != schema.TakenBusy || got.After != 0 {
			t.Errorf("%+v", got)
		}
		if keys := h.bus.Keys("r"); !slices.Contains(keys, "result.1.0.test") || slices.Contains(keys, "ctl.2") {
			t.Errorf("facts %v", keys)
		}
		if got := h.host(t, forever, false).Take(t.Context(), starter("r", `{"task":"go"}`)); got.Act != schema.TakenDone || h.asked[1] != 1 {
			t.Errorf("%+v", got)
		}
		if m := h.memory(t, "r"); m.Closed() == nil || m.Closed().State != "done" || m.Result(1, 0).Output != "3s" {
			t.Errorf("facts %v", h.bus.Keys("r"))
		}
	})
}

// TestD20StoppedWithoutItsTools: a stop needs neither the model nor the tools of the run.
func TestD20StoppedWithoutItsTools(t *testing.T) {
	t.Parallel()
	h := newHosting(nil)
	h.host(t, 3, false).Take(t.Context(), starter("r", `{"task":"go"}`)) // open, own, say
	host, err := loop.NewHost(loop.HostConfig{
		Config: loop.Config{Bus: h.bus, Principal: somebody()},
		Find:   func(string) (schema.AgentSpec, bool) { return schema.AgentSpec{}, false },
		Equip: func(context.Context, schema.AgentSpec) (loop.Model, loop.Registry, error) {
			return nil, nil, errors.New("no such model")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	wake := schema.RunMessage{Run: "r", Seq: 8}
	if got := host.Take(t.Context(), wake); got.Act != schema.TakenCannot || !strings.Contains(got.Reason, "no such model") {
		t.Errorf("%+v, want it handed back with the reason", got)
	}
	h.append(t, "r", schema.CtlKey(2), &schema.Ctl{Act: schema.CtlStop, Why: "enough"})
	if got := host.Take(t.Context(), wake); got.Act != schema.TakenDone {
		t.Errorf("%+v, want it stopped", got)
	}
	if m := h.memory(t, "r"); m.Closed() == nil || m.Closed().State != "stopped" {
		t.Errorf("facts %v", h.bus.Keys("r"))
	}
}

// TestRefusedRunIsSoonAskedAbout: another process may serve what this one does not, so the message comes back soon at
// first.
func TestRefusedRunIsSoonAskedAbout(t *testing.T) {
	t.Parallel()
	host := newHosting(nil).host(t, forever, false)
	for delivery, want := range map[uint64]time.Duration{
		0: 100 * time.Millisecond, 1: 100 * time.Millisecond, 3: 300 * time.Millisecond, 7: 700 * time.Millisecond, 50: 5 * time.Second, 1 << 40: 5 * time.Second,
	} {
		m := starter("u", `{"task":"go"}`)
		m.Call.Tool, m.Delivery = "stranger", delivery
		if got := host.Take(t.Context(), m); got.Act != schema.TakenCannot || got.After > want || got.After <= want/2 {
			t.Errorf("delivery %d: %+v, want it again after half of %v to all of it", delivery, got, want)
		}
	}
}
