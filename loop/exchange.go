package loop

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/jetcrew/jetcrew/schema"
)

// exchange is the work from a message to its answer. One goroutine runs it.
type exchange struct {
	*Run
	ctx   context.Context // for writing and for guards: ends with the caller's
	stop  *stopper
	k     int // number of the answer
	first int // its first turn
	until time.Time
	open  *schema.Open
	tally tally

	notices  []string    // what the model was not given
	told     int         // of notices, by events
	passed   int         // the last message that the prompt hook let through
	barred   int         // the message that it refused, which ends the exchange
	waiting  atomic.Bool // the turn under way waits for nothing but people
	resuming bool        // the turn under way is an earlier owner's
	span     trace.Span  // of the turn under way
}

// exchange works until an answer is written. The token of r.working is held.
func (r *Run) exchange(ctx context.Context) (schema.Answer, error) {
	ctx = trace.ContextWithSpan(ctx, r.span)
	x := &exchange{Run: r, ctx: ctx, k: r.state.Answers() + 1, first: r.state.Turns() + 1, open: r.state.Open()}
	if ms := r.agent.cfg.Agent.Limits.WallClockMS; ms > 0 && !r.agent.cfg.NoLimits {
		x.until = time.Now().Add(time.Duration(ms) * time.Millisecond)
	}
	x.stop = r.watchStop(ctx, &x.waiting)
	answer, err := x.resume()
	if err == nil && answer.Reason == "" {
		answer, err = x.begin()
	}
	if why := x.stop.end(); why != nil && !errors.Is(err, ErrFenced) && !errors.Is(err, ErrParked) {
		err = why // a stop slot stands in the run, even if the answer came first
	}
	if err == nil {
		return answer, nil
	}
	if errors.Is(err, ErrStopped) {
		answer, err = x.stopRun(answer, err)
	}
	r.leave(err)
	return answer, r.errorf("work", err)
}

// stopRun ends a stopped run, whose calls have settled. err stays the reason, unless the close fails.
func (x *exchange) stopRun(answer schema.Answer, err error) (schema.Answer, error) {
	state := x.closedAs()
	if x.ctx.Err() != nil {
		state = string(schema.ReasonCancelled)
	}
	if answer.Reason == "" {
		used, _ := x.state.Usage(x.first)
		answer = schema.Answer{Reason: schema.ReasonCancelled, Error: err.Error(), Turn: x.state.Turns(), Usage: used, AtMS: nowMS()}
	}
	if cerr := x.closeStopped(x.ctx, state); cerr != nil {
		return answer, fmt.Errorf("%w; close: %w", err, cerr)
	}
	return answer, err
}

// begin lets the messages through that wait for an answer, or ends the exchange; then it runs.
func (x *exchange) begin() (schema.Answer, error) {
	if k, why := x.blocked(); k > 0 && x.state.Turns() < x.first && !x.asked(k) {
		x.barred = k
		answer, err := x.finish(promptBlocked+why, schema.ReasonBlocked, why)
		return deref(answer), err
	}
	return x.run()
}

// asked tells whether a user's message without an answer stands before message k.
func (x *exchange) asked(k int) bool {
	for before := x.answered() + 1; before < k; before++ {
		if x.state.Say(before).Role == schema.RoleUser {
			return true
		}
	}
	return false
}

// run takes turns until one of them ends the exchange.
func (x *exchange) run() (schema.Answer, error) {
	for {
		if x.stop.model.Err() != nil { // a stopped run asks no model
			return schema.Answer{}, context.Cause(x.stop.model)
		}
		limit := x.limit()
		if limit != "" {
			if err := x.announce(limit); err != nil {
				return schema.Answer{}, err
			}
		}
		answer, err := x.step(limit)
		if err != nil || answer != nil {
			return deref(answer), err
		}
	}
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// limit returns the reason of a limit that is reached, "" while there is none.
func (x *exchange) limit() schema.Reason {
	if x.agent.cfg.NoLimits {
		return ""
	}
	l, all := x.limits(), x.spent(1)
	switch {
	case x.tally.repeated:
		return schema.ReasonRepeat
	case l.MaxSteps > 0 && x.spent(x.first).Steps >= l.MaxSteps:
		return schema.ReasonMaxSteps
	case l.MaxTokens > 0 && all.Usage.Total() >= l.MaxTokens:
		return schema.ReasonTokens
	case l.MaxCost > 0 && all.Cost >= l.MaxCost:
		return schema.ReasonCost
	case !x.until.IsZero() && !time.Now().Before(x.until):
		return schema.ReasonWallClock
	}
	return ""
}

// announce tells the model that a limit is reached. The source makes it one message however often it is written.
func (x *exchange) announce(limit schema.Reason) error {
	text := fmt.Sprintf("%s No tool can be called any more. Answer now with what you have, and say what is missing.", x.limitText(limit))
	s := schema.Say{Role: schema.RoleSystem, Text: text, Source: limitSource(limit, x.k)}
	if x.resumed && x.said(s.Source, x.state.Says()) {
		return nil
	}
	_, err := x.tell(x.ctx, s)
	return err
}

func (x *exchange) limitText(limit schema.Reason) string {
	l := x.limits()
	switch limit {
	case schema.ReasonMaxSteps:
		return fmt.Sprintf("The limit of %d steps is reached.", l.MaxSteps)
	case schema.ReasonTokens:
		return fmt.Sprintf("The limit of %d tokens is reached.", l.MaxTokens)
	case schema.ReasonCost:
		return fmt.Sprintf("The limit of %.2f US dollars is reached.", l.MaxCost)
	case schema.ReasonWallClock:
		return fmt.Sprintf("The time limit of %s is reached.", time.Duration(l.WallClockMS)*time.Millisecond)
	default:
		return x.tally.text
	}
}

// finish writes the answer that ends the exchange.
func (x *exchange) finish(text string, reason schema.Reason, why string) (*schema.Answer, error) {
	used, _ := x.state.Usage(x.first)
	a := &schema.Answer{
		Text: text, Reason: reason, Error: why, Turn: x.state.Turns(), Say: x.covered(), Usage: used, AtMS: nowMS(),
	}
	if err := x.guarded(schema.AnswerKey(x.k), a); err != nil {
		return nil, err
	}
	x.emit(Event{Type: EventFinalOutput, Text: text, Reason: reason, Usage: &used, Error: why})
	return a, nil
}

// covered returns the last say that the exchange answers: the last one its last turn saw, or, when it failed before
// any turn, the last one there is.
func (x *exchange) covered() int {
	if x.barred > 0 {
		return x.barred
	}
	if n := x.state.Turns(); n >= x.first {
		return x.state.Turn(n).Say
	}
	return x.state.Says()
}

// guarded writes a fact that a newer ctl slot refuses.
func (x *exchange) guarded(key schema.Key, p schema.Encodable) error {
	err := x.write(x.ctx, key, p, schema.CtlKey(x.own+1))
	switch {
	case errors.Is(err, schema.ErrGuarded):
		return x.refused(x.ctx)
	case errors.Is(err, schema.ErrExists):
		return ErrFenced // only an owner writes such facts, and it was not this one
	}
	return err
}

func (x *exchange) emit(e Event) {
	e.Exchange = x.k
	x.events.emit(e)
}
