package loop

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sourcegraph/conc/panics"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// promptBlocked begins the output of an exchange whose message a hook refused.
const promptBlocked = "PROMPT_BLOCKED: "

// maxPanic bounds what is logged of a value that code of a user panicked with, in bytes: it may hold arguments.
const maxPanic = 1024

// Hooks stand around what a person says and what a model is asked. NewHooks makes one of several. What stands around tool calls is a Guard. Several may
// be called at once, for different runs; one that panics refuses.
type Hooks struct {
	// Prompt sees a user's message. A block ends the exchange without a step: its output is PROMPT_BLOCKED and the reason,
	// and no model ever reads the message. It may be asked about one message again, when another process goes on with the run.
	Prompt func(ctx context.Context, text string) PromptDecision
	// Request may change what a model is asked with; facts and memory stay as they are. An error ends the exchange.
	Request func(ctx context.Context, req *model.Request) error
}

// NewHooks returns several hooks as one. They are asked in their order: the first that blocks a message, or refuses a
// request, ends the asking, and what one has changed is what those behind it see. One that panics refuses, as it does
// alone.
func NewHooks(list ...Hooks) Hooks {
	var all Hooks
	var prompts []func(context.Context, string) PromptDecision
	var requests []func(context.Context, *model.Request) error
	for _, h := range list {
		if h.Prompt != nil {
			prompts = append(prompts, h.Prompt)
		}
		if h.Request != nil {
			requests = append(requests, h.Request)
		}
	}
	if len(prompts) > 0 {
		all.Prompt = func(ctx context.Context, text string) (d PromptDecision) {
			for _, ask := range prompts {
				next := ask(ctx, cmp.Or(d.Text, text))
				if next.Block {
					return next
				}
				d.Text = cmp.Or(next.Text, d.Text)
			}
			return d
		}
	}
	if len(requests) > 0 {
		all.Request = func(ctx context.Context, req *model.Request) error {
			for _, change := range requests {
				if err := change(ctx, req); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return all
}

// PromptDecision is what becomes of a user's message; the zero value lets it through.
type PromptDecision struct {
	Block  bool
	Reason string // of the block, for the user
	// Text, if not empty, replaces the message before it is recorded. What somebody else has written into the run cannot be
	// changed any more: it is let through as it is.
	Text string
}

// Listener hears of the calls that run. It observes only: what it panics with is logged, and the call goes on.
type Listener interface {
	// Start is called before a call is published.
	Start(ctx context.Context, call *schema.Call)
	// Complete is called once its result is there, whatever that is.
	Complete(ctx context.Context, call *schema.Call, result schema.Result, latency time.Duration)
}

// hookedPrompt returns what is recorded of a message.
func (r *Run) hookedPrompt(ctx context.Context, text string) string {
	if d := r.askPrompt(ctx, text); d.Text != "" && !d.Block {
		return d.Text
	}
	return text
}

func (r *Run) askPrompt(ctx context.Context, text string) (d PromptDecision) {
	hook := r.agent.cfg.Hooks.Prompt
	if hook == nil {
		return PromptDecision{}
	}
	var catch panics.Catcher
	catch.Try(func() { d = hook(ctx, text) })
	if p := catch.Recovered(); p != nil {
		r.agent.cfg.Logger.Error("a prompt hook panicked", "run", r.id, "panic", schema.Cut(fmt.Sprint(p.Value), maxPanic), "stack", string(p.Stack))
		return PromptDecision{Block: true, Reason: "a check of this message failed"}
	}
	if d.Block && d.Reason == "" {
		d.Reason = "a hook refused this message"
	}
	return d
}

// blocked returns the first message without an answer that a hook refuses, and why; 0: it refuses none. What stands
// behind it waits for the exchange after that one.
func (x *exchange) blocked() (k int, why string) {
	if x.agent.cfg.Hooks.Prompt == nil {
		return 0, ""
	}
	for k := x.answered() + 1; k <= x.state.Says(); k++ {
		if s := x.state.Say(k); s.Role == schema.RoleUser && k > x.passed {
			if d := x.askPrompt(x.ctx, s.Text); d.Block {
				return k, d.Reason
			}
		}
		x.passed = max(x.passed, k)
	}
	return 0, ""
}

// answered returns the last message that an answer covers.
func (x *exchange) answered() (k int) {
	for n := 1; n < x.k; n++ {
		k = max(k, x.state.Answer(n).Say)
	}
	return k
}

// readable returns the last message that the model may read now.
func (x *exchange) readable() int {
	if k, _ := x.blocked(); k > 0 {
		return k - 1
	}
	return x.state.Says()
}

// hookRequest has a model request changed.
func (x *exchange) hookRequest(ctx context.Context, req *model.Request) (err error) {
	hook := x.agent.cfg.Hooks.Request
	if hook == nil {
		return nil
	}
	var catch panics.Catcher
	catch.Try(func() { err = hook(ctx, req) })
	if p := catch.Recovered(); p != nil {
		x.agent.cfg.Logger.Error("a request hook panicked", "run", x.id, "panic", schema.Cut(fmt.Sprint(p.Value), maxPanic), "stack", string(p.Stack))
		return fmt.Errorf("a hook of the model request failed")
	}
	if err != nil {
		return fmt.Errorf("a hook refused the model request: %w", err)
	}
	return nil
}

// listen tells the listener that a call starts, and returns what tells it of the result. It gets copies: it only observes.
func (x *exchange) listen(ctx context.Context, call *schema.Call) func(schema.Result) {
	l := x.agent.cfg.Listener
	if l == nil {
		return nil
	}
	observe := func(what func()) {
		var catch panics.Catcher
		catch.Try(what)
		if p := catch.Recovered(); p != nil {
			x.agent.cfg.Logger.Error("a listener panicked", "run", x.id, "tool", call.Tool, "panic", schema.Cut(fmt.Sprint(p.Value), maxPanic), "stack", string(p.Stack))
		}
	}
	ctx = context.WithoutCancel(ctx)
	began := time.Now()
	first, second := *call, *call
	observe(func() { l.Start(ctx, &first) })
	return func(r schema.Result) {
		if r.Error != nil {
			e := *r.Error
			r.Error = &e
		}
		observe(func() { l.Complete(ctx, &second, r, time.Since(began)) })
	}
}
