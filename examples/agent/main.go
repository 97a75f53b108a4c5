// Command agent is an agent that uses the tool of the worker next door. With a worker running:
//
//	NATS_URL=nats://127.0.0.1:4222 OPENAI_API_KEY=... go run ./examples/agent "Where is order 17?"
//
// Any endpoint that speaks chat completions will do: set OPENAI_BASE_URL, and MODEL to a model it has.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/model/openai"
	"github.com/jetcrew/jetcrew/schema"
)

func main() {
	ctx := context.Background()
	b, err := bus.Connect(ctx, bus.Config{URL: os.Getenv("NATS_URL")})
	check(err)
	defer b.Close()
	llm, err := openai.New(openai.Config{Model: cmp.Or(os.Getenv("MODEL"), "gpt-4o-mini")})
	check(err)
	tools := b.Select("orders/*")
	check(tools.Wait(ctx, 5*time.Second))
	a, err := loop.New(loop.Config{
		Agent: schema.AgentSpec{ID: "clerk", Instructions: "You answer questions about orders.", Limits: schema.DefaultLimits()},
		Model: llm, Bus: b, Registry: tools, Principal: schema.Principal{ID: "clerk", Scopes: []string{"tool:orders/*"}},
	})
	check(err)
	answer, err := a.Run(ctx, strings.Join(os.Args[1:], " "))
	check(err)
	fmt.Println(answer.Text)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
