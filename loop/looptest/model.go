package looptest

import (
	"context"
	"sync"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// Step is one answer of a scripted model.
type Step func(context.Context, *model.Request) (*model.Response, error)

// Model is a loop.Model that answers by a script and keeps what it was asked.
type Model struct {
	mu       sync.Mutex
	steps    []Step
	again    Step
	requests []*model.Request
}

// NewModel returns a model that takes one step per request, and after the last one is at its end (model.ErrEnd).
func NewModel(steps ...Step) *Model { return &Model{steps: steps} }

// Always returns a model that answers every request by step.
func Always(step Step) *Model { return &Model{again: step} }

// Generate implements loop.Model.
func (m *Model) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	step := m.take(req)
	if step == nil {
		return nil, model.ErrEnd
	}
	return step(ctx, req)
}

func (m *Model) take(req *model.Request) Step {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, req)
	if len(m.steps) == 0 {
		return m.again
	}
	step := m.steps[0]
	m.steps = m.steps[1:]
	return step
}

// Requests returns what the model was asked so far.
func (m *Model) Requests() []*model.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]*model.Request(nil), m.requests...)
}

// Text answers with text.
func Text(text string) Step {
	return Answer(model.Response{Text: text, Finish: schema.FinishStop})
}

// Calls answers with calls.
func Calls(calls ...schema.RawCall) Step {
	return Answer(model.Response{Calls: calls, Finish: schema.FinishCalls})
}

// Answer answers with r.
func Answer(r model.Response) Step {
	return func(context.Context, *model.Request) (*model.Response, error) {
		c := r
		return &c, nil
	}
}

// Fail fails with err.
func Fail(err error) Step {
	return func(context.Context, *model.Request) (*model.Response, error) { return nil, err }
}

// Hang waits until the request's context ends.
func Hang(ctx context.Context, _ *model.Request) (*model.Response, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
