package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"
)

type command struct {
	Run    runCmd    `cmd:"" default:"withargs" help:"Measure and print the table."`
	Memory memoryCmd `cmd:"" help:"Compare the memory of worker and orchestrator after many calls."`
	Server serverCmd `cmd:"" hidden:""`
	Worker workerCmd `cmd:"" hidden:""`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var c command
	k := kong.Parse(&c, kong.Name("bench"), kong.BindTo(ctx, (*context.Context)(nil)))
	if err := k.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
