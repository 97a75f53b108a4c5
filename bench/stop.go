package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

// stopCmd measures how long a stop takes to reach what runs on a worker.
type stopCmd struct {
	Rounds int    `default:"100" help:"Calls stopped in each way."`
	Out    string `help:"File to write the table to as well." type:"path"`
}

// stopping is one way to stop a call that runs. It returns when the stop was given.
type stopping struct {
	name string
	stop func(s *stopScene, agent, id string) (given func(ctx context.Context) (time.Time, error), err error)
}

var stoppings = []stopping{
	{"Ctrl-C of a run in the foreground", (*stopScene).interrupt},
	{"`runs stop`", (*stopScene).stopRun},
	{"the run's wall clock", (*stopScene).limit},
	{"a stop of the run that called the agent", (*stopScene).stopParent},
}

func (c stopCmd) Run(ctx context.Context) error {
	out, end, err := output(c.Out)
	if err != nil {
		return err
	}
	defer end()
	header(out, "How soon a stop arrives", fmt.Sprintf("go run ./bench stop --rounds %d", c.Rounds))
	fmt.Fprintln(out, "Server, worker and orchestrator are processes of their own. From the stop until a handler's context has ended, and until no")
	fmt.Fprint(out, "process of the group of a shell command is left, which has children in the background. The aim is less than a second.\n\n")
	fmt.Fprint(out, "| stopped by | handler, p50 (ms) | p99 | process group, p50 (ms) | p99 | |\n|---|---|---|---|---|---|\n")
	s, err := newStopScene(ctx)
	if err != nil {
		return err
	}
	defer s.end()
	for _, way := range stoppings {
		if err := c.measure(ctx, out, s, way); err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
	}
	return nil
}

func (c stopCmd) measure(ctx context.Context, out io.Writer, s *stopScene, way stopping) error {
	fmt.Fprintf(out, "| %s ", way.name)
	verdict := "reached"
	for _, agent := range []string{agentHandler, agentGroup} {
		took := make([]time.Duration, c.Rounds)
		for i := range took {
			var err error
			if took[i], err = s.once(ctx, way, agent); err != nil {
				return fmt.Errorf("%s, round %d: %w", agent, i, err)
			}
		}
		p99 := percentile(took, 0.99)
		if p99 >= time.Second {
			verdict = "MISSED"
		}
		fmt.Fprintf(out, "| %.1f | %.1f ", millis(median(took)), millis(p99))
	}
	fmt.Fprintf(out, "| %s |\n", verdict)
	return nil
}

// percentile returns the smallest of xs that as many as share says do not exceed.
func percentile(xs []time.Duration, share float64) time.Duration {
	xs = slices.Sorted(slices.Values(xs))
	return xs[int(math.Ceil(share*float64(len(xs))))-1]
}

// stopScene is a server, a worker with tools that do not end, an orchestrator and a connection.
type stopScene struct {
	scene
	dir     string         // where tools and this process meet
	stopped sync.WaitGroup // processes that were told to end
}

func newStopScene(ctx context.Context) (s *stopScene, err error) {
	s = &stopScene{}
	defer func() {
		if err != nil {
			s.end()
		}
	}()
	if s.dir, err = os.MkdirTemp("", "jetcrew-bench-"); err != nil {
		return nil, err
	}
	if s.server, err = spawn(ctx, "server"); err != nil {
		return nil, err
	}
	if s.worker, err = spawn(ctx, "endless", s.server.line, s.dir); err != nil {
		return nil, err
	}
	if s.host, err = spawn(ctx, "stop-host", s.server.line); err != nil {
		return nil, err
	}
	s.bus, err = bus.Connect(ctx, bus.Config{URL: s.server.line})
	return s, err
}

func (s *stopScene) end() {
	s.stopped.Wait()
	s.scene.end()
	if s.dir != "" {
		_ = os.RemoveAll(s.dir) // under the temporary directory, which somebody else cleans too
	}
}

// once starts a call, waits until it runs, stops it in a way, and returns how long it went on.
func (s *stopScene) once(ctx context.Context, way stopping, agent string) (time.Duration, error) {
	id := schema.NewID()
	stop, err := way.stop(s, agent, id)
	if err != nil {
		return 0, err
	}
	var started string
	if err := soon(ctx, func() bool { started = s.read(id + ".started"); return started != "" }); err != nil {
		return 0, fmt.Errorf("the call does not start: %w", err)
	}
	given, err := stop(ctx)
	if err != nil {
		return 0, err
	}
	var ended time.Time
	err = soon(ctx, func() bool {
		ended = time.Now()
		if agent == agentGroup {
			return !slices.ContainsFunc(strings.Fields(started), runs)
		}
		at, _ := strconv.ParseInt(s.read(id+".ended"), 10, 64)
		ended = time.Unix(0, at)
		return at != 0
	})
	if err != nil {
		return 0, fmt.Errorf("the call goes on: %w", err)
	}
	return ended.Sub(given), nil
}

// runs tells whether a process has not ended. One that has, and that nobody has asked about yet, is still in its group.
func runs(pid string) bool {
	data, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	_, rest, _ := strings.Cut(string(data), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

func (s *stopScene) read(name string) string {
	data, _ := os.ReadFile(filepath.Join(s.dir, name)) // it is there when there is something to say
	return string(data)
}

// soon looks each millisecond, for half a minute, whether something is so.
func soon(ctx context.Context, so func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute/2)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			return errors.New("not within half a minute")
		case <-tick.C:
		}
	}
	return nil
}

// interrupt sends a foreground process what the terminal sends.
func (s *stopScene) interrupt(agent, id string) (func(context.Context) (time.Time, error), error) {
	p, err := spawn(context.Background(), "stop-run", s.server.line, agent, id)
	if err != nil {
		return nil, err
	}
	return func(context.Context) (time.Time, error) {
		given := time.Now()
		err := p.cmd.Process.Signal(os.Interrupt)
		s.stopped.Go(func() { _ = p.cmd.Wait() }) // it says that it was cancelled
		return given, err
	}, nil
}

func (s *stopScene) stopRun(agent, id string) (func(context.Context) (time.Time, error), error) {
	run, err := s.start(agent, id)
	return func(ctx context.Context) (time.Time, error) {
		given := time.Now()
		_, err := s.bus.StopRun(ctx, run, "it is measured")
		return given, err
	}, err
}

func (s *stopScene) stopParent(agent, id string) (func(context.Context) (time.Time, error), error) {
	return s.stopRun(prefixParent+agent, id)
}

// limit lets the run's time end, which counts from when it is said what to do.
func (s *stopScene) limit(agent, id string) (func(context.Context) (time.Time, error), error) {
	run, err := s.start(prefixLimited+agent, id)
	return func(ctx context.Context) (time.Time, error) {
		facts, err := s.bus.Facts(ctx, run, 0, schema.KindSay)
		if err != nil || len(facts) == 0 {
			return time.Time{}, errors.Join(err, errors.New("nobody has said anything"))
		}
		return facts[0].Time.Add(wallClock), nil
	}, err
}

func (s *stopScene) start(agent, id string) (run string, err error) {
	run = schema.NewID()
	return run, s.bus.StartRun(context.Background(), &schema.Call{Run: run, Tool: agent, Args: schema.JSONText(fmt.Sprintf(`{"task":%q}`, id))})
}
