package executor

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// Listener observes calls that run, and changes nothing of them: it gets copies, and a panic of it is logged. Its methods
// may be called concurrently and should return soon, since the call waits for them.
type Listener interface {
	// Start hears that a call is about to run.
	Start(ctx context.Context, call *schema.Call)
	// Complete hears how it ended, after every Start once: whether it succeeded is result.OK, also a panic or a timeout is a
	// result; took is the time since Start. An attempt that will be repeated ends with a failed result that nobody records.
	Complete(ctx context.Context, call *schema.Call, result schema.Result, took time.Duration)
}

// Listeners is several listeners as one, called in their order. One that panics does not keep the others from hearing.
type Listeners []Listener

// Start tells all of them.
func (l Listeners) Start(ctx context.Context, call *schema.Call) {
	for _, one := range l {
		start(ctx, slog.Default(), one, call)
	}
}

// Complete tells all of them.
func (l Listeners) Complete(ctx context.Context, call *schema.Call, result schema.Result, took time.Duration) {
	for _, one := range l {
		complete(ctx, slog.Default(), one, completion{call, result, took})
	}
}

// Listening is the place of the one listener of an agent or of a worker: it can be replaced while calls run. It is a
// Listener itself, and its Wrap is a Wrapper. The zero Listening has none.
type Listening struct {
	Logger  *slog.Logger // for panics of the listener; default slog.Default(); not to be changed once in use
	current atomic.Pointer[Listener]
}

// NewListening returns the place of l; nil is none.
func NewListening(l Listener) *Listening {
	place := new(Listening)
	place.Replace(l)
	return place
}

// Replace lets calls that start from now on be heard by with; nil is none.
func (p *Listening) Replace(with Listener) {
	if with == nil {
		p.current.Store(nil)
		return
	}
	p.current.Store(&with)
}

// Wrap is the Wrapper that tells the listener of each call that passes. Who heard the start of a call hears its end.
func (p *Listening) Wrap(next Execute) Execute {
	return func(ctx context.Context, call *schema.Call) (schema.Result, *schema.Pending) {
		l := p.current.Load()
		if l == nil {
			return next(ctx, call)
		}
		return p.heard(ctx, *l, next, call)
	}
}

func (p *Listening) heard(ctx context.Context, l Listener, next Execute, call *schema.Call) (res schema.Result, pending *schema.Pending) {
	seen := *call // a listener only observes
	begun, returned := time.Now(), false
	start(ctx, p.logger(), l, &seen)
	defer func() {
		end := res
		switch {
		case !returned: // next panicked, and goes on doing so
			end = call.Fail(schema.Panic, "the call panicked")
		case pending != nil:
			end = call.Fail(schema.ToolFailed, "not now: "+pending.Reason)
		}
		complete(ctx, p.logger(), l, completion{&seen, end, time.Since(begun)})
	}()
	res, pending = next(ctx, call)
	returned = true
	return res, pending
}

// Start tells the present listener.
func (p *Listening) Start(ctx context.Context, call *schema.Call) {
	if l := p.current.Load(); l != nil {
		seen := *call
		start(ctx, p.logger(), *l, &seen)
	}
}

// Complete tells the present listener.
func (p *Listening) Complete(ctx context.Context, call *schema.Call, result schema.Result, took time.Duration) {
	if l := p.current.Load(); l != nil {
		seen := *call
		complete(ctx, p.logger(), *l, completion{&seen, result, took})
	}
}

func (p *Listening) logger() *slog.Logger {
	if p.Logger == nil {
		return slog.Default()
	}
	return p.Logger
}

// completion is what Complete hears.
type completion struct {
	call   *schema.Call
	result schema.Result
	took   time.Duration
}

func start(ctx context.Context, log *slog.Logger, l Listener, call *schema.Call) {
	defer logListener(ctx, log, call)
	l.Start(ctx, call)
}

func complete(ctx context.Context, log *slog.Logger, l Listener, c completion) {
	defer logListener(ctx, log, c.call)
	if c.result.Error != nil {
		e := *c.result.Error
		c.result.Error = &e
	}
	l.Complete(ctx, c.call, c.result, c.took)
}

// logListener is deferred around a listener.
func logListener(ctx context.Context, log *slog.Logger, call *schema.Call) {
	if v := recover(); v != nil {
		log.LogAttrs(ctx, slog.LevelError, "a listener panicked", slog.String("tool", schema.Cut(clean(call.Tool), 80)),
			slog.String("call", call.String()), slog.String("panic", schema.Cut(clean(fmt.Sprint(v)), 1024)),
			slog.String("stack", string(debug.Stack())))
	}
}
