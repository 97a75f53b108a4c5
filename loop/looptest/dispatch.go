package looptest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
)

var _ loop.Dispatcher = (*Bus)(nil)

// Queue is the queue of tools that name none.
const Queue = "test"

// defaultWithin bounds a call that has no bound of its own.
const defaultWithin = 300 * time.Second

type tool struct {
	schema.Tool
	run func(context.Context, *schema.Call) (string, error)
}

// Tool adds a tool. run must return when its context ends; an error that is a *schema.Error gives the result's type,
// and a panic is a result.
func (b *Bus) Tool(def schema.Tool, run func(context.Context, *schema.Call) (string, error)) {
	if def.Queue == "" {
		def.Queue = Queue
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tools = slices.DeleteFunc(b.tools, func(t tool) bool { return t.Name == def.Name })
	b.tools = append(b.tools, tool{def.WithDigest(), run})
}

// Tools implements loop.Registry.
func (b *Bus) Tools(context.Context) ([]schema.Tool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defs := make([]schema.Tool, len(b.tools))
	for i, t := range b.tools {
		defs[i] = t.Tool
	}
	return defs, nil
}

// MostUnderWay returns how many calls ran at the same time at most.
func (b *Bus) MostUnderWay() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.most
}

// Start implements loop.Dispatcher.
func (b *Bus) Start(calls ...schema.Dispatch) {
	for _, d := range calls {
		if b.Broken != nil {
			if err := b.Broken(d.Call); err != nil {
				d.Done(schema.Result{}, err)
				continue
			}
		}
		go func() { d.Done(b.dispatch(d.Ctx, d.Call, d.Queue, d.Within)) }()
	}
}

func (b *Bus) dispatch(ctx context.Context, call *schema.Call, queue string, within time.Duration) (schema.Result, error) {
	if within == 0 {
		within = defaultWithin
		if call.TimeoutMS > 0 {
			within = time.Duration(call.TimeoutMS) * time.Millisecond
		}
	}
	r := b.run(ctx, call, queue, within)
	if b.Alter != nil {
		b.Alter(&r, call)
	}
	key := call.ResultKey(queue)
	_, err := b.Append(context.WithoutCancel(ctx), call.Run, key, &r, schema.Key{})
	if errors.Is(err, schema.ErrExists) && b.Fact(call.Run, key, &r) {
		return r, nil
	}
	return r, err
}

func (b *Bus) run(ctx context.Context, call *schema.Call, queue string, within time.Duration) (r schema.Result) {
	run := b.find(queue, call.Tool)
	if run == nil {
		return call.Failf(schema.NoWorker, "no worker of queue %s has %s", queue, call.Tool)
	}
	began := schema.BeginKey(call.Turn, call.Index, queue)
	if _, err := b.Append(context.WithoutCancel(ctx), call.Run, began, &schema.Begin{}, call.ResultKey(queue)); err != nil {
		return call.Fail(schema.WorkerLost, err.Error())
	}
	b.count(1)
	defer b.count(-1)
	defer func() {
		if p := recover(); p != nil {
			r = call.Fail(schema.Panic, fmt.Sprint(p))
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	output, err := run(ctx, call)
	var typed *schema.Error
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return call.Failf(schema.Timeout, "no result within %s", within)
	case ctx.Err() != nil:
		return call.Fail(schema.Cancelled, "the call was cancelled")
	case errors.As(err, &typed):
		return call.Fail(typed.Type, typed.Message)
	case err != nil:
		return call.Fail(schema.ToolFailed, err.Error())
	}
	return call.Done(output)
}

func (b *Bus) find(queue, name string) func(context.Context, *schema.Call) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.tools {
		if t.Queue == queue && t.Name == name {
			return t.run
		}
	}
	return nil
}

func (b *Bus) count(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now += n
	b.most = max(b.most, b.now)
}
