package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
)

func signalContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
}

// workerCmd is a worker process of either side.
type workerCmd struct {
	URL      string `arg:""`
	Raw      bool
	Slots    int `default:"256"`
	Replicas int `default:"1"`
}

func (w workerCmd) Run(ctx context.Context) error {
	if !w.Raw {
		return jetcrewWorker(ctx, bus.Config{URL: w.URL, Replicas: w.Replicas}, w.Slots)
	}
	nc, err := nats.Connect(w.URL)
	if err != nil {
		return err
	}
	defer nc.Close()
	return rawWorker(ctx, nc, w.Slots, w.Replicas)
}
