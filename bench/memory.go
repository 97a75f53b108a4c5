package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/jetcrew/jetcrew/bus"
)

// memoryCmd compares the resident memory of worker and orchestrator after a first part of the calls with that at the
// end: many runs must leave nothing behind.
type memoryCmd struct {
	First int    `default:"100000" help:"Calls before the first look."`
	Total int    `default:"1000000" help:"Calls before the second look."`
	Out   string `help:"File to write the table to as well." type:"path"`
}

func (m memoryCmd) Run(ctx context.Context) error {
	server, err := spawn(ctx, "server")
	if err != nil {
		return err
	}
	defer server.stop()
	worker, err := spawn(ctx, "worker", server.line)
	if err != nil {
		return err
	}
	defer worker.stop()
	c, err := newCrew(ctx, bus.Config{URL: server.line}, false)
	if err != nil {
		return err
	}
	defer c.bus.Close()
	look := func() (orchestrator, work int64) {
		debug.FreeOSMemory()
		return resident(os.Getpid()), resident(worker.cmd.Process.Pid)
	}
	if err := m.calls(c, m.First); err != nil {
		return err
	}
	o1, w1 := look()
	if err := m.calls(c, m.Total-m.First); err != nil {
		return err
	}
	o2, w2 := look()
	out, end, err := output(m.Out)
	if err != nil {
		return err
	}
	defer end()
	header(out, "Memory after many calls", "go run ./bench memory")
	fmt.Fprintf(out, "| resident memory | after %d calls | after %d calls | ratio |\n|---|---|---|---|\n", m.First, m.Total)
	fmt.Fprintf(out, "| orchestrator | %.1f MiB | %.1f MiB | %.2f |\n", mib(o1), mib(o2), float64(o2)/float64(o1))
	fmt.Fprintf(out, "| worker | %.1f MiB | %.1f MiB | %.2f |\n", mib(w1), mib(w2), float64(w2)/float64(w1))
	return nil
}

// part is how many calls are done side by side before the next ones begin: in runs of 400, with turns of 8, so that the
// runs of the first part are as large as those of the others.
const part = 50_000

// calls has n calls done.
func (m memoryCmd) calls(c *crew, n int) error {
	for done := 0; done < n; done += part {
		if _, err := c.flood(min(part, n-done), outstanding); err != nil {
			return err
		}
	}
	return nil
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
