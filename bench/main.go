package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/pprof"

	"github.com/alecthomas/kong"
)

type command struct {
	Run     runCmd     `cmd:"" default:"withargs" help:"Measure and print the table."`
	Memory  memoryCmd  `cmd:"" help:"Compare the memory of worker and orchestrator after many calls."`
	Recover recoverCmd `cmd:"" help:"Measure what happens when processes die, and what waiting costs."`
	Stop    stopCmd    `cmd:"" help:"Measure how soon a stop reaches handlers and process groups."`
	Server  serverCmd  `cmd:"" hidden:""`
	Host    hostCmd    `cmd:"" hidden:""`
	Worker  workerCmd  `cmd:"" hidden:""`

	Endless  endlessCmd  `cmd:"" hidden:""`
	StopHost stopHostCmd `cmd:"" hidden:""`
	StopRun  stopRunCmd  `cmd:"" hidden:""`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // as the commands do; for both sides
	}
	var c command
	if name := os.Getenv("BENCH_CPUPROFILE"); name != "" {
		f, err := os.Create(fmt.Sprintf("%s.%d", name, os.Getpid()))
		if err == nil && pprof.StartCPUProfile(f) == nil {
			defer pprof.StopCPUProfile()
		}
	}
	k := kong.Parse(&c, kong.Name("bench"), kong.BindTo(ctx, (*context.Context)(nil)))
	if err := k.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		defer os.Exit(1)
	}
}
