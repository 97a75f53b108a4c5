package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// town is the queue agents in memory: messages, wake-ups and timers, and one process after the other that takes what
// comes. The first process is killed after some steps, over all runs it works on; those after it live.
type town struct {
	*hosting
	answers map[string]map[int]*model.Response // by agent and turn
	left    int                                // steps until the kill
	after   bool                               // what is published at the kill is stored

	lost   func()                                                               // called when the first process was killed; nil: nothing
	absent string                                                               // an agent whose calls nobody takes
	alien  string                                                               // an agent that nobody serves, as the bus has found out
	shape  func(*schema.AgentSpec)                                              // nil: all agents are alike
	think  func(context.Context, *model.Request) (*model.Response, error, bool) // nil, or false: the script answers
	setUp  func(*loop.HostConfig)                                               // nil: nothing to add

	mu        sync.Mutex
	seq       uint64
	queue     []schema.RunMessage
	news      chan struct{} // closed and replaced when a result comes
	published map[string]int
}

func newTown(left int, after bool, answers map[string]map[int]*model.Response) *town {
	return &town{hosting: newHosting(nil), answers: answers, left: left, after: after, news: make(chan struct{}), published: map[string]int{}}
}

func (w *town) step() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left--
	return w.left
}

// post puts a message into the queue, a wake-up before all others, so that a parent is woken while calls are open.
func (w *town) post(m schema.RunMessage) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seq++
	m.Seq, m.Delivery = w.seq, 1
	if m.Call == nil {
		w.queue = slices.Insert(w.queue, 0, m)
	} else {
		w.queue = append(w.queue, m)
	}
	return w.seq
}

// process is what one process sees of the town.
type process struct {
	*looptest.Bus
	town *town
	dead atomic.Bool // of the process: nothing it does reaches anybody
}

func (p *process) Append(ctx context.Context, run string, key schema.Key, f schema.Encodable, unless schema.Key) (uint64, error) {
	if p.dead.Load() || p.town.step() < 0 {
		p.dead.Store(true)
		return 0, errKilled
	}
	return p.town.append(ctx, run, key, f, unless)
}

// append wakes whom the fact is news for.
func (w *town) append(ctx context.Context, run string, key schema.Key, f schema.Encodable, unless schema.Key) (uint64, error) {
	seq, err := w.bus.Append(ctx, run, key, f, unless)
	if err != nil {
		return seq, err
	}
	c, _ := f.(*schema.Ctl)
	s, _ := f.(*schema.Say)
	if key.Queue == schema.QueueAgents || c != nil && c.Act == schema.CtlStop || s != nil && strings.HasPrefix(s.Source, schema.SourceRetry) {
		w.post(schema.RunMessage{Run: run})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.news)
	w.news = make(chan struct{})
	return seq, nil
}

func (p *process) Start(calls ...schema.Dispatch) {
	for _, d := range calls {
		if d.Queue != schema.QueueAgents {
			(&mortal{Bus: p.Bus, left: forever}).start(d)
			continue
		}
		left := forever
		if !p.dead.Load() {
			left = p.town.step()
		}
		if p.dead.Load() || left < 0 && !p.town.after {
			p.dead.Store(true)
			d.Done(schema.Result{}, errKilled)
			continue
		}
		p.dead.Store(left < 0)
		p.town.publish(d, p.dead.Load())
	}
}

// publish stores a call, or has its child stopped, and waits for its result unless the process is dead.
func (w *town) publish(d schema.Dispatch, dead bool) {
	child := d.Call.StartKey(d.Queue).Run
	if d.Ctx.Err() == nil && d.Within >= 0 {
		w.published[child]++
		deadline := time.Now().Add(d.Within)
		seq := w.post(schema.RunMessage{Run: child, Call: d.Call, Deadline: deadline})
		if dead {
			d.Done(schema.Result{}, errKilled)
			return
		}
		d.Placed(d.Call.Index, seq, deadline)
	} else if r, claimed := w.stopChild(d); claimed {
		d.Done(r, nil)
		return
	}
	go w.await(d)
}

func (w *town) stopChild(d schema.Dispatch) (r schema.Result, claimed bool) {
	r = d.Call.Fail(schema.Cancelled, "not started")
	if d.Ctx.Err() == nil {
		r = d.Call.Fail(schema.Timeout, "not started")
	}
	_, err := w.append(context.Background(), d.Call.Run, d.Call.ResultKey(d.Queue), &r, d.Call.StartKey(d.Queue))
	if err == nil {
		return r, true
	}
	for attempt := 1; ; attempt++ {
		child := schema.ChildRun(d.Call.Run, d.Call.Turn, d.Call.Index, attempt)
		if !w.bus.Fact(child, schema.OpenKey(), &schema.Open{}) {
			break
		}
		w.stop(child)
	}
	d.Placed(d.Call.Index, 0, time.Time{})
	return r, false
}

// stop writes a stop slot, unless the run is closed.
func (w *town) stop(run string) {
	err := schema.ErrExists
	for k := 1; errors.Is(err, schema.ErrExists); k++ {
		_, err = w.append(context.Background(), run, schema.CtlKey(k), &schema.Ctl{Act: schema.CtlStop, Why: "parent"}, schema.CloseKey())
	}
}

func (w *town) await(d schema.Dispatch) {
	for {
		w.mu.Lock()
		news := w.news
		w.mu.Unlock()
		var r schema.Result
		if w.bus.Fact(d.Call.Run, d.Call.ResultKey(d.Queue), &r) {
			d.Done(r, nil)
			return
		}
		select {
		case <-news:
		case <-d.Leave:
			d.Done(schema.Result{}, schema.ErrLeft)
			return
		}
	}
}

// Generate answers by the agent's script.
func (w *town) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	if w.think != nil {
		if r, err, ok := w.think(ctx, req); ok {
			return r, err
		}
	}
	w.hosting.mu.Lock()
	defer w.hosting.mu.Unlock()
	if r := w.answers[req.Agent][req.Turn]; r != nil {
		c := *r
		return &c, nil
	}
	return &model.Response{Text: fmt.Sprintf("%s after %d messages", req.Agent, len(req.Messages)), Finish: schema.FinishStop}, nil
}

func (w *town) take(t *testing.T, p *process, m schema.RunMessage) schema.Taken {
	t.Helper()
	cfg := loop.HostConfig{
		Config: loop.Config{Bus: p, Principal: somebody()},
		Find: func(name string) (schema.AgentSpec, bool) {
			spec := w.cfg.Agent
			spec.ID = name
			if w.shape != nil {
				w.shape(&spec)
			}
			return spec, name != w.alien
		},
		Equip: func(context.Context, schema.AgentSpec) (loop.Model, loop.Registry, error) { return w, w, nil },
	}
	if w.setUp != nil {
		w.setUp(&cfg)
	}
	host, err := loop.NewHost(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return host.Take(t.Context(), m)
}

// Tools are those of the workers, and the agents.
func (w *town) Tools(ctx context.Context) ([]schema.Tool, error) {
	tools, err := w.bus.Tools(ctx)
	for _, id := range []string{"anna", "bert"} {
		tools = append(tools, schema.AgentTool(schema.AgentSpec{ID: id}))
	}
	return tools, err
}

// live has messages taken until none is left; timers are due when nothing else is to be done.
func (w *town) live(t *testing.T) {
	t.Helper()
	timers := map[string]time.Time{}
	p := &process{Bus: w.bus, town: w}
	for n := 0; n < 500; n++ {
		w.mu.Lock()
		empty := len(w.queue) == 0
		var m schema.RunMessage
		if !empty {
			m, w.queue = w.queue[0], w.queue[1:]
		}
		w.mu.Unlock()
		if m.Call != nil && w.absent == m.Call.Tool {
			continue
		}
		if empty {
			if !w.due(timers) {
				return
			}
			continue
		}
		m.Unserved = m.Call != nil && m.Call.Tool == w.alien
		got := w.take(t, p, m)
		if p.dead.Load() { // the message comes again, to the next process
			p = &process{Bus: w.bus, town: w}
			w.mu.Lock()
			first := w.left < forever/2
			w.left = forever
			w.queue = append(w.queue, m)
			w.mu.Unlock()
			if first && w.lost != nil {
				w.lost()
			}
			continue
		}
		switch got.Act {
		case schema.TakenDone:
		case schema.TakenParked:
			timers[m.Run] = got.At
			w.look(m.Run, got.Await)
		case schema.TakenBusy:
			m.Delivery++
			w.mu.Lock()
			w.queue = append(w.queue, m)
			w.mu.Unlock()
		default:
			t.Fatalf("run %s: %+v", m.Run, got)
		}
	}
	t.Fatal("the town does not come to rest")
}

func (w *town) look(run string, await []schema.Key) {
	for _, key := range await {
		var c schema.Ctl
		if key.Kind == schema.KindCtl && (!w.bus.Fact(run, key, &c) || c.Act != schema.CtlStop) {
			continue
		}
		if facts, _ := w.bus.Facts(context.Background(), run, 0, key.Kind); len(facts) > 0 && hasKey(facts, key) {
			w.post(schema.RunMessage{Run: run})
			return
		}
	}
}

func hasKey(facts []schema.Fact, key schema.Key) bool {
	for _, f := range facts {
		if f.Key == key {
			return true
		}
	}
	return false
}

// due lets the earliest timer of an open run come; false: there is none.
func (w *town) due(timers map[string]time.Time) bool {
	first := ""
	for run, at := range timers {
		var end schema.Close
		if at.IsZero() || w.bus.Fact(run, schema.CloseKey(), &end) {
			continue
		}
		if first == "" || at.Before(timers[first]) {
			first = run
		}
	}
	if first == "" {
		return false
	}
	time.Sleep(time.Until(timers[first]))
	delete(timers, first)
	w.post(schema.RunMessage{Run: first})
	return true
}
