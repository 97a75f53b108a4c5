// Package desk is what the examples of wirings share: an agent whose tools run in its own process.
package desk

import (
	"cmp"
	"context"
	"os"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/embedded"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/model/openai"
	"github.com/jetcrew/jetcrew/schema"
)

// Ask has an agent with these tools do the task and returns its answer. The model is MODEL at OPENAI_BASE_URL.
func Ask(ctx context.Context, tools *executor.Wired, task string) (string, error) {
	url := os.Getenv("NATS_URL")
	if url == "" {
		srv, err := embedded.Start(embedded.Config{})
		if err != nil {
			return "", err
		}
		defer srv.Stop()
		url = srv.URL()
	}
	b, err := bus.Connect(ctx, bus.Config{URL: url})
	if err != nil {
		return "", err
	}
	defer b.Close()
	local, err := executor.LocalConfig{Journal: b}.NewLocal(tools.Set)
	if err != nil {
		return "", err
	}
	defer local.Wait()
	calls, err := executor.Route(b, local)
	if err != nil {
		return "", err
	}
	llm, err := openai.New(openai.Config{Model: cmp.Or(os.Getenv("MODEL"), "gpt-4o-mini")})
	if err != nil {
		return "", err
	}
	agent, err := loop.New(loop.Config{
		Agent:     schema.AgentSpec{ID: "clerk", Instructions: "You answer questions about orders.", Limits: schema.DefaultLimits()},
		Principal: schema.Principal{ID: "local", Scopes: []string{"tool:*"}},
		Model:     llm, Bus: b, Dispatcher: calls, Registry: tools,
	})
	if err != nil {
		return "", err
	}
	answer, err := agent.Run(ctx, task)
	return answer.Text, err
}
