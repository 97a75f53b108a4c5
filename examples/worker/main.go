// Command worker is a tool worker with a function of one's own. Start as many as you like:
//
//	NATS_URL=nats://127.0.0.1:4222 go run ./examples/worker
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

type order struct {
	ID string `json:"id" jsonschema:"description=Number of the order"`
}

func orderStatus(_ context.Context, o order) (string, error) {
	return fmt.Sprintf("order %s is on its way", o.ID), nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b, err := bus.Connect(ctx, bus.Config{URL: os.Getenv("NATS_URL")})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	set, err := executor.NewSet("orders",
		executor.Func("order_status", "Say where an order is.", orderStatus, executor.Idempotent(), executor.Effect(schema.EffectRead)))
	if err != nil {
		log.Fatal(err)
	}
	if err := b.Serve(ctx, bus.Worker{Queue: "orders", Slots: 4, Tools: set}); err != nil {
		log.Fatal(err)
	}
}
