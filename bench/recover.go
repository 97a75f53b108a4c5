package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// recoverCmd measures what happens when processes die, and what waiting costs.
type recoverCmd struct {
	Rounds int           `default:"5" help:"Orchestrators killed; the table shows medians."`
	Turns  int           `default:"125" help:"Turns of 8 calls that the killed orchestrator has behind it."`
	Window time.Duration `default:"15s" help:"How long throughput is measured."`
	Parked int           `default:"10000" help:"Runs that wait at once."`
	Out    string        `help:"File to write the table to as well." type:"path"`
}

const turnSize = 8

func (c recoverCmd) Run(ctx context.Context) error {
	out, end, err := output(c.Out)
	if err != nil {
		return err
	}
	defer end()
	header(out, "When processes die", fmt.Sprintf("go run ./bench recover --rounds %d --turns %d --window %v --parked %d", c.Rounds, c.Turns, c.Window, c.Parked))
	fmt.Fprint(out, "| | measured | aim |\n|---|---|---|\n")
	var takes, resumes []time.Duration
	for range c.Rounds {
		take, resume, err := c.takeover(ctx)
		if err != nil {
			return fmt.Errorf("takeover: %w", err)
		}
		takes, resumes = append(takes, take), append(resumes, resume)
	}
	fmt.Fprintf(out, "| takeover of a killed orchestrator's run (s) | %.1f | ≤ 10 |\n", median(takes).Seconds())
	fmt.Fprintf(out, "| resume of a run with %d calls, to its answer (s) | %.2f | < 1 |\n", c.Turns*turnSize, median(resumes).Seconds())
	calm, err := c.throughput(ctx, false)
	if err != nil {
		return fmt.Errorf("throughput: %w", err)
	}
	storm, err := c.throughput(ctx, true)
	if err != nil {
		return fmt.Errorf("throughput while workers are killed: %w", err)
	}
	fmt.Fprintf(out, "| throughput while one of three workers is killed each second (of undisturbed) | %.0f of %.0f calls/s: %.2f | ≥ 0.8 |\n", storm, calm, storm/calm)
	before, after, err := c.parked(ctx)
	if err != nil {
		return fmt.Errorf("parked runs: %w", err)
	}
	fmt.Fprintf(out, "| resident memory of an orchestrator with %d parked runs (MiB; before them) | %.0f (%.0f) | < 100 |\n", c.Parked, mib(after), mib(before))
	return nil
}

// scene is a server, a worker, an orchestrator and a connection.
type scene struct {
	server, worker, host *process
	bus                  *bus.Bus
}

// newScene starts a scene; hostArgs are further ones of its orchestrator.
func newScene(ctx context.Context, hostArgs ...string) (s *scene, err error) {
	s = &scene{}
	defer func() {
		if err != nil {
			s.end()
		}
	}()
	if s.server, err = spawn(ctx, "server"); err != nil {
		return nil, err
	}
	if s.worker, err = spawn(ctx, "worker", s.server.line); err != nil {
		return nil, err
	}
	if s.host, err = spawn(ctx, append([]string{"host", s.server.line}, hostArgs...)...); err != nil {
		return nil, err
	}
	s.bus, err = bus.Connect(ctx, bus.Config{URL: s.server.line})
	return s, err
}

func (s *scene) end() {
	if s.bus != nil {
		s.bus.Close()
	}
	for _, p := range []*process{s.host, s.worker, s.server} {
		if p != nil {
			p.stop()
		}
	}
}

// takeover kills an orchestrator while it asks its model after many turns. It returns how long it took until another
// one owned the run, and from then until the answer.
func (c recoverCmd) takeover(ctx context.Context) (take, resume time.Duration, err error) {
	s, err := newScene(ctx, "--hold", fmt.Sprint(c.Turns+1))
	if err != nil {
		return 0, 0, err
	}
	defer s.end()
	b := s.bus
	run := schema.NewID()
	if err := startRun(ctx, b, run, c.Turns, false); err != nil {
		return 0, 0, err
	}
	if err := until(ctx, func() (bool, error) { return results(ctx, b, run, c.Turns) }); err != nil {
		return 0, 0, err
	}
	second, err := spawn(ctx, "host", s.server.line)
	if err != nil {
		return 0, 0, err
	}
	defer second.stop()
	lost := b.Now()
	if err := s.host.cmd.Process.Kill(); err != nil {
		return 0, 0, err
	}
	var facts []schema.Fact
	err = until(ctx, func() (bool, error) {
		facts, err = b.Facts(ctx, run, 0, schema.KindCtl, schema.KindAnswer)
		return len(facts) > 0 && facts[len(facts)-1].Key.Kind == schema.KindAnswer, err
	})
	if err != nil {
		return 0, 0, err
	}
	for _, f := range facts {
		switch f.Key {
		case schema.CtlKey(2):
			take = f.Time.Sub(lost)
			resume -= time.Duration(f.Time.UnixNano())
		case schema.AnswerKey(1):
			resume += time.Duration(f.Time.UnixNano())
		}
	}
	return take, resume, nil
}

// results tells whether all calls of a turn have one.
func results(ctx context.Context, b *bus.Bus, run string, turn int) (bool, error) {
	facts, err := b.Facts(ctx, run, 0, schema.KindResult)
	n := 0
	for _, f := range facts {
		if f.Key.N == turn {
			n++
		}
	}
	return n == turnSize, err
}

// until waits until something is so, at most a minute.
func until(ctx context.Context, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := so(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("not within a minute")
		case <-tick.C:
		}
	}
}

// throughput is that of a thousand outstanding idempotent calls on three workers; with kill, one of them is killed each
// second and started again.
func (c recoverCmd) throughput(ctx context.Context, kill bool) (float64, error) {
	server, err := spawn(ctx, "server")
	if err != nil {
		return 0, err
	}
	defer server.stop()
	workers := make([]*process, 3)
	for i := range workers {
		if workers[i], err = spawn(ctx, "worker", server.line, "--slots", "64"); err != nil {
			return 0, err
		}
	}
	over := make(chan struct{})
	var killing sync.WaitGroup
	defer func() {
		close(over)
		killing.Wait()
		for _, w := range workers {
			w.stop()
		}
	}()
	b, err := bus.Connect(ctx, bus.Config{URL: server.line})
	if err != nil {
		return 0, err
	}
	defer b.Close()
	if kill {
		killing.Go(func() { killEachSecond(ctx, server.line, workers, over) })
	}
	return keepBusy(ctx, b, c.Window)
}

// keepBusy keeps a thousand calls outstanding for a while and returns how many succeeded in a second.
func keepBusy(ctx context.Context, b *bus.Bus, within time.Duration) (float64, error) {
	run := schema.NewID()
	var ended, turn atomic.Int64
	var failed atomic.Pointer[error]
	var open sync.WaitGroup
	began := time.Now()
	for range outstanding {
		open.Go(func() {
			for time.Since(began) < within && failed.Load() == nil {
				call := &schema.Call{Run: run, Turn: int(turn.Add(1)), Tool: toolNoop, Args: schema.JSONText(payload), Idempotent: true}
				r, err := b.Dispatch(ctx, call, benchQueue, time.Minute)
				if err != nil {
					failed.Store(&err)
				}
				if r.OK && time.Since(began) < within {
					ended.Add(1)
				}
			}
		})
	}
	open.Wait() // what a killed worker held comes again after AckWait
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(ended.Load()) / within.Seconds(), nil
}

func killEachSecond(ctx context.Context, url string, workers []*process, over <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for i := 0; ; i = (i + 1) % len(workers) {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		_ = workers[i].cmd.Process.Kill()
		_ = workers[i].cmd.Wait()
		if w, err := spawn(ctx, "worker", url, "--slots", "64"); err == nil {
			workers[i] = w
		}
	}
}

// parked returns the memory of an orchestrator before and after it has parked many conversations.
func (c recoverCmd) parked(ctx context.Context) (before, after int64, err error) {
	s, err := newScene(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer s.end()
	if err := s.park(ctx, 100); err != nil { // warm up
		return 0, 0, err
	}
	before = resident(s.host.cmd.Process.Pid)
	err = s.park(ctx, c.Parked)
	return before, resident(s.host.cmd.Process.Pid), err
}

// park starts n conversations and returns when all wait for the next message: a parked run leaves no message.
func (s *scene) park(ctx context.Context, n int) error {
	for range n {
		if err := startRun(ctx, s.bus, schema.NewID(), 0, true); err != nil {
			return err
		}
	}
	nc, err := nats.Connect(s.server.line)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	return until(ctx, func() (bool, error) {
		work, err := js.Stream(ctx, "JC_WORK")
		return err == nil && work.CachedInfo().State.Msgs == 0, err
	})
}

func startRun(ctx context.Context, b *bus.Bus, run string, turns int, keep bool) error {
	args := fmt.Sprintf(`{"task":"%d","keep":%t}`, turns, keep)
	return b.StartRun(ctx, &schema.Call{Run: run, Tool: "bench", Args: schema.JSONText(args)})
}

// hostCmd is an orchestrator whose model asks for as many turns of calls as the task says.
type hostCmd struct {
	URL  string `arg:""`
	Hold int    `help:"Turn that the model never answers."`
}

func (h hostCmd) Run(ctx context.Context) error {
	ctx, stop := signalContext(ctx)
	defer stop()
	b, err := bus.Connect(ctx, bus.Config{URL: h.URL})
	if err != nil {
		return err
	}
	defer b.Close()
	registry := b.Select("*")
	if err := registry.Wait(ctx, 10*time.Second); err != nil {
		return err
	}
	host, err := loop.NewHost(loop.HostConfig{
		Config: loop.Config{Bus: b, NoLimits: true, Principal: schema.Principal{ID: "local", Scopes: []string{"tool:*", "tool:agents/*"}}},
		Find: func(name string) (schema.AgentSpec, bool) {
			return schema.AgentSpec{ID: name, Parallel: schema.Parallel{Calls: true}}, true
		},
		Equip: func(context.Context, schema.AgentSpec) (loop.Model, loop.Registry, error) { return h, registry, nil },
	})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return b.Host(ctx, bus.Hosting{Slots: 64, Host: host, Drain: time.Second})
}

// Generate makes a hostCmd a model.
func (h hostCmd) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	if req.Turn == h.Hold {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	var turns int
	for _, m := range req.Messages {
		if m.Role == schema.RoleUser {
			_, _ = fmt.Sscan(m.Text, &turns)
		}
	}
	return script{tool: toolNoop, turns: turns, size: turnSize}.Generate(ctx, req)
}
