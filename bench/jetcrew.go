package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

const (
	benchQueue = "bench"
	toolNoop   = "noop"
	toolOnce   = "once"
)

// payload is what a call and a result carry: about 300 bytes.
var payload = `{"data":"` + strings.Repeat("x", 280) + `"}`

// benchTools are the two no-op tools. Their schema has one field, so that validation has something to do.
func benchTools() (*executor.Set, error) {
	type in struct {
		Data string `json:"data"`
	}
	noop := func(context.Context, in) (string, error) { return payload, nil }
	return executor.NewSet(benchQueue,
		executor.Func(toolNoop, "Does nothing, any number of times.", noop, executor.Idempotent()),
		executor.Func(toolOnce, "Does nothing, at most once.", noop),
	)
}

// jetcrewWorker serves the bench queue through the whole path of a worker.
func jetcrewWorker(ctx context.Context, cfg bus.Config, slots int) error {
	set, err := benchTools()
	if err != nil {
		return err
	}
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer b.Close()
	ctx, stop := signalContext(ctx)
	defer stop()
	fmt.Println("ready")
	return b.Serve(ctx, bus.Worker{Queue: benchQueue, Slots: slots, Tools: set})
}

// crew is Jetcrew as a caller: an agent whose model asks for the same calls again and again, on a real loop.
type crew struct {
	bus   *bus.Bus
	tools []schema.Tool
	tool  string
}

func newCrew(ctx context.Context, cfg bus.Config, once bool) (*crew, error) {
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	set, err := benchTools()
	if err != nil {
		return nil, err
	}
	c := &crew{bus: b, tools: set.Tools(), tool: toolNoop}
	if once {
		c.tool = toolOnce
	}
	return c, nil
}

// Tools makes a crew a registry that needs no catalog.
func (c *crew) Tools(context.Context) ([]schema.Tool, error) { return c.tools, nil }

// script is a model that asks for size calls in each of its turns, then answers.
type script struct {
	tool        string
	turns, size int
}

func (s script) Generate(_ context.Context, req *model.Request) (*model.Response, error) {
	if req.Turn > s.turns {
		return &model.Response{Text: "done", Finish: schema.FinishStop}, nil
	}
	calls := make([]schema.RawCall, s.size)
	for i := range calls {
		calls[i] = schema.RawCall{ID: "c" + strconv.Itoa(i), Name: s.tool, Args: payload}
	}
	return &model.Response{Calls: calls, Finish: schema.FinishCalls}, nil
}

// run has an agent do turns of size calls each; seen gets its events.
func (c *crew) run(ctx context.Context, turns, size int, parallel bool, seen func(loop.Event)) error {
	a, err := loop.New(loop.Config{
		Agent:    schema.AgentSpec{ID: "bench", Parallel: schema.Parallel{Calls: parallel}},
		Model:    script{tool: c.tool, turns: turns, size: size},
		Bus:      c.bus,
		Registry: c,
		Events:   seen,
		NoLimits: true,

		Principal: schema.Principal{ID: "bench", Scopes: []string{"tool:*"}},
	})
	if err != nil {
		return err
	}
	answer, err := a.Run(ctx, "bench")
	if err == nil && answer.Reason != schema.ReasonDone {
		err = fmt.Errorf("run ended by %s: %s", answer.Reason, answer.Error)
	}
	return err
}

// one measures calls one after another: turns of 50 in sequence, from one result to the next.
func (c *crew) one(n int) ([]time.Duration, error) {
	const perTurn = 50
	var times []time.Duration
	var last time.Time
	err := c.run(context.Background(), max(1, n/perTurn), perTurn, false, func(e loop.Event) {
		if e.Type == loop.EventToolSettled {
			if !e.Result.OK {
				panic(e.Result.Output)
			}
			if e.Call.Index > 0 {
				times = append(times, e.Time.Sub(last))
			}
			last = e.Time
		}
	})
	return times, err
}

// batches measures whole turns: from the model's answer to the last result in memory, the turn's fact included.
func (c *crew) batches(n, size int) ([]time.Duration, error) {
	var times []time.Duration
	var start time.Time
	err := c.run(context.Background(), n, size, true, func(e loop.Event) {
		switch e.Type {
		case loop.EventModelRequest:
			start = e.Time
		case loop.EventStepEnd:
			if len(times) < n {
				times = append(times, e.Time.Sub(start))
			}
		}
	})
	return times, err
}

// flood keeps about outstanding calls under way: runs side by side, each with turns of 8 parallel calls.
func (c *crew) flood(calls, outstanding int) (time.Duration, error) {
	const perTurn = 8
	runs := max(1, outstanding/perTurn)
	turns := max(1, calls/runs/perTurn)
	start := time.Now()
	errs := make([]error, runs)
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() { errs[i] = c.run(context.Background(), turns, perTurn, true, nil) })
	}
	wg.Wait()
	took := time.Since(start)
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	// The rounds above may hold fewer calls than were asked for.
	return took * time.Duration(calls) / time.Duration(runs*turns*perTurn), nil
}
