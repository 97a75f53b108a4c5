package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

const (
	readyWithin = 15 * time.Second // for a worker to appear in the catalog
	drainWithin = 5 * time.Second  // for what a worker runs at its end
	stopWithin  = 10 * time.Second // for a worker to end before it is killed
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
	f.flags = []string{"--parent", "--drain", drainWithin.String()}
	if opts.Verbose {
		f.flags = append(f.flags, "--verbose")
	}
	return f, nil
}

// Start starts a worker process, "worker" followed by args, of which the first is the command, and
// returns when it is in the catalog.
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
	switch {
	case f.closed:
		return nil, fmt.Errorf("start worker %q: the session is closed", args)
	case len(args) == 0:
		return nil, errors.New("start worker: no command")
	}
	id := schema.NewID()
	p, err := f.start(id, f.commandLine(id, args))
	if err != nil {
		return nil, fmt.Errorf("start worker %q: %w", args, err)
	}
	p.queues = queuesIn(args)
	f.processes = append(f.processes, p)
	return p, nil
}

// commandLine puts the flags of every worker behind the command: what follows may end with arguments that no flag can
// follow.
func (f *Fleet) commandLine(id string, args []string) []string {
	line := append([]string{"worker", args[0], "--instance", id}, f.flags...)
	return append(line, args[1:]...)
}

// queuesIn counts the queues that a command line names; a worker without any serves its default one.
func queuesIn(args []string) int {
	n := 0
	for _, a := range args {
		if a == "--queue" || strings.HasPrefix(a, "--queue=") {
			n++
		}
	}
	return max(1, n)
}

// present counts the queues for which an instance is in the catalog.
func present(c *bus.Catalog, instance string) int {
	n := 0
	for _, w := range c.Workers() {
		if w.Instance == instance && len(w.Tools) > 0 {
			n++
		}
	}
	return n
}

// ready waits until the worker is in the catalog with all its queues.
func (f *Fleet) ready(ctx context.Context, p *Process) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	catalog := f.bus.Catalog()
	for {
		_, change := catalog.Changes()
		if present(catalog, p.Instance) >= p.queues {
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
