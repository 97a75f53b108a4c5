package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
)

// caller is one side of the comparison.
type caller interface {
	one(n int) ([]time.Duration, error)
	batches(n, size int) ([]time.Duration, error)
	flood(calls, outstanding int) (time.Duration, error)
}

// runCmd measures both sides.
type runCmd struct {
	Rounds   int    `default:"5" help:"Interleaved rounds; the table shows their medians."`
	Calls    int    `default:"1000" help:"Calls measured one at a time, each round."`
	Turns    int    `default:"100" help:"Turns measured of each size, each round."`
	Flood    int    `default:"40000" help:"Calls of the throughput measurement, each round."`
	Tools    string `default:"idempotent,run-once" help:"Which of the two tools to measure with."`
	Replicas int    `default:"1" help:"Servers, and copies of every stream: 3 for a cluster."`
	Out      string `help:"File to write the table to as well." type:"path"`
}

var batchSizes = []int{8, 64, 256}

const outstanding = 1000

// figures are one round's measurements of one side.
type figures struct {
	one        time.Duration
	batch      map[int]time.Duration
	throughput float64       // calls per second
	cpu        time.Duration // of all processes, for 1,000 calls of the throughput measurement
}

func (r runCmd) Run(ctx context.Context) error {
	out, end, err := output(r.Out)
	if err != nil {
		return err
	}
	defer end()
	title, flags := "Jetcrew beside the raw exchange", ""
	if r.Replicas > 1 {
		title = fmt.Sprintf("%s, on %d servers with a copy of every stream each", title, r.Replicas)
		flags = fmt.Sprintf(" --replicas %d", r.Replicas)
	}
	header(out, title, fmt.Sprintf("go run ./bench run --rounds %d --calls %d --turns %d --flood %d%s", r.Rounds, r.Calls, r.Turns, r.Flood, flags))
	fmt.Fprintf(out, "%d interleaved rounds, medians. Servers, worker and caller share the machine.\n", r.Rounds)
	for _, once := range []bool{false, true} {
		if !strings.Contains(r.Tools, kind(once)) {
			continue
		}
		rows, err := r.compare(ctx, once)
		if err != nil {
			return err
		}
		r.print(out, once, rows)
	}
	return nil
}

// header says what was measured, where and how.
func header(out io.Writer, title, command string) {
	fmt.Fprintf(out, "# %s\n\n%s/%s, %d CPUs, %s, commit %s, `%s`\n\n", title, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), commit(), command)
}

// commit names what was measured, as git knows it.
func commit() string {
	out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// output is standard output and, if there is a name, a file.
func output(name string) (io.Writer, func(), error) {
	if name == "" {
		return os.Stdout, func() {}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, nil, err
	}
	return io.MultiWriter(os.Stdout, f), func() { _ = f.Close() }, nil
}

// compare measures the sides in turn, each against a server and a worker of its own.
func (r runCmd) compare(ctx context.Context, once bool) (map[string][]figures, error) {
	rows := map[string][]figures{}
	for round := range r.Rounds {
		for _, side := range []string{"raw", "jetcrew"} {
			f, err := r.round(ctx, side, once)
			if err != nil {
				return nil, fmt.Errorf("round %d of %s: %w", round+1, side, err)
			}
			rows[side] = append(rows[side], f)
		}
	}
	return rows, nil
}

func (r runCmd) round(ctx context.Context, side string, once bool) (figures, error) {
	servers, err := startServers(ctx, r.Replicas)
	if err != nil {
		return figures{}, err
	}
	defer servers.stop()
	args := []string{"worker", servers.url, "--replicas", strconv.Itoa(r.Replicas)}
	if side == "raw" {
		args = append(args, "--raw")
	}
	worker, err := spawn(ctx, args...)
	if err != nil {
		return figures{}, err
	}
	defer worker.stop()
	c, end, err := r.newCaller(ctx, side, servers.url, once)
	if err != nil {
		return figures{}, err
	}
	defer end()
	return r.figures(c, append(servers.pids(), os.Getpid(), worker.cmd.Process.Pid))
}

func (r runCmd) newCaller(ctx context.Context, side, url string, once bool) (caller, func(), error) {
	if side == "jetcrew" {
		c, err := newCrew(ctx, bus.Config{URL: url, Replicas: r.Replicas}, once)
		if err != nil {
			return nil, nil, err
		}
		return c, c.bus.Close, nil
	}
	nc, err := nats.Connect(url)
	if err != nil {
		return nil, nil, err
	}
	c, err := newRaw(ctx, nc, once, r.Replicas)
	return c, nc.Close, err
}

func (r runCmd) figures(c caller, pids []int) (figures, error) {
	f := figures{batch: map[int]time.Duration{}}
	if _, err := c.flood(2000, 200); err != nil { // warm up
		return f, err
	}
	times, err := c.one(r.Calls)
	if err != nil {
		return f, err
	}
	f.one = median(times)
	for _, size := range batchSizes {
		if times, err = c.batches(r.Turns, size); err != nil {
			return f, err
		}
		f.batch[size] = median(times)
	}
	before := totalCPU(pids)
	took, err := c.flood(r.Flood, outstanding)
	if err != nil {
		return f, err
	}
	f.throughput = float64(r.Flood) / took.Seconds()
	f.cpu = (totalCPU(pids) - before) * 1000 / time.Duration(r.Flood)
	return f, nil
}

func totalCPU(pids []int) (total time.Duration) {
	for _, pid := range pids {
		total += cpu(pid)
	}
	return total
}

func median[T time.Duration | float64](xs []T) T {
	if len(xs) == 0 {
		return 0
	}
	xs = slices.Sorted(slices.Values(xs))
	return xs[len(xs)/2]
}
