package executor

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// guard runs the code of tools so that whatever it does, its call is settled.
//
//	running ── returns, panics, exits ──────────► done
//	   └─ ctx ends ── grace ── still running ──► abandoned ── returns after all ──► (forgotten)
type guard struct {
	grace     time.Duration
	log       *slog.Logger
	abandoned atomic.Int64
}

// run is one run of a tool. Its goroutine writes out and err before it closes done; whoever waited for done may
// read them.
type run struct {
	guard *guard
	tool  *Tool
	ctx   context.Context
	call  *schema.Call
	done  chan struct{}
	given atomic.Bool // the last word is spoken: the goroutine has ended, or its guard has given it up
	clean bool        // the tool returned, rather than panicked or exited
	out   string
	err   error
}

// do runs the tool and returns what it returned, *PanicError, errExited, or errAbandoned when it did not return
// within the grace after ctx ended.
func (g *guard) do(ctx context.Context, tool *Tool, call *schema.Call) (string, error) {
	r := &run{guard: g, tool: tool, ctx: ctx, call: call, done: make(chan struct{})}
	// Nobody can wait for a handler that ignores its context, so this goroutine's owner is the count of abandoned ones.
	go r.run()
	select {
	case <-r.done:
		return r.out, r.err
	case <-ctx.Done():
		return r.lastChance()
	}
}

func (r *run) run() {
	defer r.finish()
	r.out, r.err = r.tool.Run(r.ctx, r.call)
	r.clean = true
}

func (r *run) finish() {
	if v := recover(); v != nil {
		p := newPanicError(v)
		r.out, r.err = "", p
		r.guard.logPanic(r.ctx, r.call, p)
	} else if !r.clean {
		r.out, r.err = "", errExited
	}
	if !r.given.CompareAndSwap(false, true) {
		r.guard.abandoned.Add(-1)
	}
	close(r.done)
}

// lastChance waits for the grace, then gives the handler up.
func (r *run) lastChance() (string, error) {
	timer := time.NewTimer(r.guard.grace)
	defer timer.Stop()
	select {
	case <-r.done:
		return r.out, r.err
	case <-timer.C:
	}
	r.guard.abandoned.Add(1)
	if r.given.CompareAndSwap(false, true) {
		return "", errAbandoned
	}
	r.guard.abandoned.Add(-1)
	<-r.done
	return r.out, r.err
}

// logPanic writes down what the result leaves out.
func (g *guard) logPanic(ctx context.Context, call *schema.Call, p *PanicError) {
	g.log.LogAttrs(ctx, slog.LevelError, "tool panicked", slog.String("tool", call.Tool), slog.String("call", call.String()),
		slog.String("panic", schema.Cut(clean(fmt.Sprint(p.Value)), 1024)), slog.String("stack", string(p.Stack)))
}
