package loop_test

import (
	"context"
	"fmt"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/schema"
)

func Example() {
	bus := looptest.NewBus() // or a connected *bus.Bus
	bus.Tool(schema.Tool{Name: "now", Description: "Tells the time."}, func(context.Context, *schema.Call) (string, error) {
		return "12:30", nil
	})
	agent, err := loop.New(loop.Config{
		Agent:    schema.AgentSpec{ID: "clock", Limits: schema.DefaultLimits()},
		Model:    looptest.NewModel(looptest.Calls(schema.RawCall{Name: "now"}), looptest.Text("It is half past twelve.")),
		Bus:      bus,
		Registry: bus,

		Principal: schema.Principal{ID: "ada", Scopes: []string{"tool:now"}}, // on whose behalf, and what it may do
	})
	if err != nil {
		panic(err)
	}
	answer, err := agent.Run(context.Background(), "What time is it?")
	fmt.Println(answer.Text, answer.Reason, err)
	// Output: It is half past twelve. done <nil>
}
