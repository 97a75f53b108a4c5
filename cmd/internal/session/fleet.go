package session

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

const (
	readyWithin = 15 * time.Second // for a worker to appear in the catalog
	stopWithin  = 10 * time.Second // for a worker to drain before it is killed
)

// Fleet is the worker processes of a session. It is safe for concurrent use.
type Fleet struct {
	bus     *bus.Bus
	log     *slog.Logger
	program string
	input   string   // what a worker reads first: the server's URL
	flags   []string // of every worker
	env     []string
	verbose bool

	mu        sync.Mutex
	processes []*Process
	closed    bool
}

func newFleet(b *bus.Bus, url string, opts Options) (*Fleet, error) {
	program, err := executable()
	if err != nil {
		return nil, err
	}
	f := &Fleet{bus: b, log: opts.Logger, program: program, input: url + "\n", verbose: opts.Verbose}
	f.env = workerEnv(os.Environ(), opts)
	f.flags = []string{"--parent"}
	if opts.Verbose {
		f.flags = append(f.flags, "--verbose")
	}
	return f, nil
}

// Start starts a worker process, "worker" followed by args, and returns when it is in the catalog.
func (f *Fleet) Start(ctx context.Context, args ...string) (*Process, error) {
	p, err := f.spawn(args)
	if err != nil {
		return nil, err
	}
	if err := f.ready(ctx, p); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// Processes returns the workers in the order of their start, also those that have ended.
func (f *Fleet) Processes() []*Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.processes)
}

// Find returns the process of an instance, nil if it is none of the fleet's.
func (f *Fleet) Find(instance string) *Process {
	for _, p := range f.Processes() {
		if p.Instance == instance {
			return p
		}
	}
	return nil
}

// startAll starts all members side by side.
func (f *Fleet) startAll(ctx context.Context, members []Member) error {
	var started []*Process
	for _, m := range members {
		for range max(1, m.Count) {
			p, err := f.spawn(m.Args)
			if err != nil {
				return err
			}
			started = append(started, p)
		}
	}
	for _, p := range started {
		if err := f.ready(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fleet) spawn(args []string) (*Process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, fmt.Errorf("start worker %q: the session is closed", args)
	}
	id := schema.NewID()
	full := append([]string{"worker"}, args...)
	p, err := f.start(id, append(append(full, f.flags...), "--instance", id))
	if err != nil {
		return nil, fmt.Errorf("start worker %q: %w", args, err)
	}
	f.processes = append(f.processes, p)
	return p, nil
}

// ready waits until the worker is in the catalog.
func (f *Fleet) ready(ctx context.Context, p *Process) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	catalog := f.bus.Catalog()
	for {
		_, change := catalog.Changes()
		if slices.ContainsFunc(catalog.Workers(), func(w bus.WorkerInfo) bool { return w.Instance == p.Instance }) {
			return nil
		}
		select {
		case <-change:
		case <-p.Done():
			return fmt.Errorf("worker %d ended while it started: %w", p.PID, p.failure())
		case <-ctx.Done():
			return fmt.Errorf("worker %d is not in the catalog: %w%s", p.PID, ctx.Err(), p.said())
		}
	}
}

// close stops all workers side by side and lets no further one start.
func (f *Fleet) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range f.Processes() {
		all.Go(p.Stop)
	}
	all.Wait()
}
