package loop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sourcegraph/conc/panics"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

// Retries of a model request, the one place where one is sent again. The wait doubles from retryWait to
// maxRetryWait, less up to a quarter so that many agents do not come back at the same moment; a provider's Retry-After
// is never undercut.
const (
	maxAttempts  = 5
	retryWait    = 500 * time.Millisecond
	maxRetryWait = 30 * time.Second
)

// ask gets the model's answer within ctx.
func (x *exchange) ask(ctx context.Context, req *model.Request) (resp *model.Response, err error) {
	began := time.Now()
	x.emit(Event{Type: EventModelRequest, Turn: req.Turn, Messages: len(req.Messages), Tools: len(req.Tools)})
	g := &gate{to: &x.events}
	req.Delta = x.deltas(g, req.Turn)
	resp, err = x.attempts(ctx, req)
	end := Event{Type: EventModelResponse, Exchange: x.k, Turn: req.Turn, ElapsedMS: time.Since(began).Milliseconds()}
	if err != nil {
		end.Error = err.Error()
	} else {
		end.Text, end.Calls, end.Model, end.Finish, end.Usage = resp.Text, len(resp.Calls), resp.Model, resp.Finish, &resp.Usage
		x.noticeUnfit(resp.Unfit)
	}
	end.Notices = x.newNotices()
	g.close(end)
	return resp, err
}

// deltas returns where the pieces of an answer go: nil, which means do not stream, when nobody listens.
func (x *exchange) deltas(g *gate, turn int) func(model.Delta) {
	if x.events.sink == nil {
		return nil
	}
	return func(d model.Delta) {
		g.emit(Event{Type: EventModelDelta, Exchange: x.k, Turn: turn, Text: d.Text, Reasoning: d.Reasoning})
	}
}

func (x *exchange) attempts(ctx context.Context, req *model.Request) (*model.Response, error) {
	for n := 1; ; n++ {
		resp, err := x.generate(ctx, req)
		if err == nil {
			return resp, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var e *model.Error
		if !errors.As(err, &e) || !e.Temporary() {
			return nil, err
		}
		if n == maxAttempts {
			return nil, fmt.Errorf("gave up after %d attempts: %w", n, err)
		}
		if err := x.backOff(ctx, req.Turn, n, e); err != nil {
			return nil, err
		}
	}
}

// backOff waits before attempt n+1. A wait that cannot end in time is not begun: the error says so at once.
func (x *exchange) backOff(ctx context.Context, turn, n int, e *model.Error) error {
	wait := max(backOffWait(n), e.RetryAfter)
	if until, ok := ctx.Deadline(); ok && time.Until(until) <= wait {
		return fmt.Errorf("the next attempt, in %s, would be after the time limit: %w", wait.Round(time.Millisecond), e)
	}
	x.emit(Event{Type: EventModelRetry, Turn: turn, Attempt: n + 1, WaitMS: wait.Milliseconds(), Error: e.Error()})
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func backOffWait(n int) time.Duration {
	wait := min(retryWait<<(n-1), maxRetryWait)
	return wait - rand.N(wait/4)
}

// generate is one request, in a span of its own.
func (x *exchange) generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	m := x.agent.cfg.Agent.Model
	ctx, span := tracing.StartChat(ctx, tracing.Chat{Provider: m.Provider, Model: m.Name, Run: x.id, Stream: req.Delta != nil})
	resp, err := x.tryGenerate(ctx, req)
	var e *model.Error
	switch {
	case err == nil:
		tracing.RecordChat(span, tracing.ChatResult{
			Model: resp.Model, Finish: string(resp.Finish), Input: resp.Usage.Input, Output: resp.Usage.Output,
			CacheRead: resp.Usage.CacheRead, CacheWrite: resp.Usage.CacheWrite,
		})
		span.End()
	case errors.As(err, &e):
		tracing.EndFailed(span, string(e.Kind), e.Error())
	default:
		tracing.End(span, err)
	}
	return resp, err
}

// tryGenerate asks the model client. One that panics has failed.
func (x *exchange) tryGenerate(ctx context.Context, req *model.Request) (resp *model.Response, err error) {
	var c panics.Catcher
	c.Try(func() { resp, err = x.agent.cfg.Model.Generate(ctx, req) })
	if p := c.Recovered(); p != nil {
		x.agent.cfg.Logger.Error("the model client panicked", "run", x.id, "panic", schema.Cut(fmt.Sprint(p.Value), maxPanic), "stack", string(p.Stack))
		return nil, fmt.Errorf("model client panicked: %v", p.Value)
	}
	if err == nil && resp == nil {
		return nil, errors.New("model client returned neither an answer nor an error")
	}
	return resp, err
}
