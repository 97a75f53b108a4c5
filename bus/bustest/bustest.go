package bustest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

// Connect opens a bus that ends with the test. Of several servers each call begins at another one.
func Connect(t testing.TB, srv *Servers, change ...func(*bus.Config)) *bus.Bus {
	t.Helper()
	cfg := bus.Config{URL: srv.URL(), Replicas: srv.Replicas(), Options: srv.Options()}
	for _, c := range change {
		c(&cfg)
	}
	b, err := bus.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// Serve runs a worker until the test ends, or until the returned function is called.
func Serve(t testing.TB, b *bus.Bus, w bus.Worker) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Serve(ctx, w) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return stop
}

// Func runs a call.
type Func = func(context.Context, *schema.Call) (schema.Result, *schema.Pending)

// Tools is a bus.Server of plain functions. A tool whose name ends in RunOnce is run-once, the others are idempotent.
type Tools map[string]Func

// RunOnce marks, at the end of its name, a tool that is not idempotent.
const RunOnce = "!"

// Tools returns the definitions, by name.
func (ts Tools) Tools() (tools []schema.Tool) {
	for name := range ts {
		tools = append(tools, schema.Tool{
			Name: name, Description: "a test tool", Parameters: `{"type":"object"}`, Idempotent: !strings.HasSuffix(name, RunOnce),
		})
	}
	slices.SortFunc(tools, func(a, b schema.Tool) int { return strings.Compare(a.Name, b.Name) })
	return tools
}

// Execute calls the tool's function.
func (ts Tools) Execute(ctx context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
	return ts[c.Tool](ctx, c)
}

// Echo returns the arguments.
func Echo(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
	return c.Done(string(c.Args)), nil
}

// Call returns call index of turn 1 of a run.
func Call(run, tool string, index int) *schema.Call {
	return &schema.Call{
		Run: run, Turn: 1, Index: index, Label: fmt.Sprintf("c%d", index), Tool: tool,
		Args: schema.JSONText(fmt.Sprintf(`{"i":%d}`, index)), Idempotent: !strings.HasSuffix(tool, RunOnce),
	}
}
