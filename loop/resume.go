package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// resume goes on with an exchange that an earlier owner began: it rebuilds the counters from the facts and takes the
// last turn, which is not asked for again, to its end. A zero answer says that the exchange goes on.
func (x *exchange) resume() (schema.Answer, error) {
	if !x.resumed {
		return schema.Answer{}, nil
	}
	x.first = x.unanswered()
	n := x.state.Turns()
	if n < x.first {
		return schema.Answer{}, nil
	}
	x.countTime()
	for k := x.first; k < n && !x.agent.cfg.NoLimits; k++ {
		if !x.stays {
			x.excuse(x.state.Turn(k))
		}
		x.tally.add(x.state.Turn(k), x.state)
	}
	answer, err := x.finishTurn(x.state.Turn(n))
	return deref(answer), err
}

// countTime has the wall clock run since the exchange's first turn, unless somebody is there who wants it to go on now.
func (x *exchange) countTime() {
	if began := x.state.Turn(x.first).StartedMS; !x.until.IsZero() && began > 0 && !x.stays {
		x.until = time.UnixMilli(began).Add(time.Duration(x.agent.cfg.Agent.Limits.WallClockMS) * time.Millisecond)
	}
}

// unanswered returns the first turn that belongs to no answer.
func (r *Run) unanswered() int {
	if a := r.state.Answer(r.state.Answers()); a != nil {
		return max(0, min(a.Turn, r.state.Turns())) + 1
	}
	return 1
}

// finishTurn settles the calls of an earlier owner's turn. Views and the end of the exchange may be missing too, so
// what has its result takes the same way.
func (x *exchange) finishTurn(t *schema.Turn) (*schema.Answer, error) {
	began := time.Now()
	x.emit(Event{Type: EventStepStart, Turn: t.N})
	defer func() { x.emit(Event{Type: EventStepEnd, Turn: t.N, ElapsedMS: time.Since(began).Milliseconds()}) }()
	x.resuming = true
	err := x.execute(t)
	x.resuming = false
	if err != nil {
		return nil, err
	}
	x.excuse(t)
	if x.stop.model.Err() != nil { // stopped or handed back: the answer is not this owner's to write
		return nil, context.Cause(x.stop.model)
	}
	return x.conclude(t, x.limitOf(t))
}

// recorded returns the result that an earlier owner's call has; nil: none, or the turn is this owner's.
func (x *exchange) recorded(call *schema.Call) *schema.Result {
	if !x.resuming {
		return nil
	}
	return x.state.Result(call.Turn, call.Index)
}

func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// limitOf returns the limit that made t a last turn: the one that was announced to it.
func (x *exchange) limitOf(t *schema.Turn) schema.Reason {
	for _, limit := range []schema.Reason{schema.ReasonRepeat, schema.ReasonMaxSteps, schema.ReasonTokens, schema.ReasonCost, schema.ReasonWallClock} {
		if x.said(limitSource(limit, x.k), t.Say) {
			return limit
		}
	}
	return ""
}

func limitSource(limit schema.Reason, k int) string {
	return fmt.Sprintf(schema.SourceLimit+"%s:%d", limit, k)
}

// said tells whether one of the messages up to number k has a source.
func (r *Run) said(source string, k int) bool {
	for i := 1; i <= min(k, r.state.Says()); i++ { // a stranger may have chosen k
		if s := r.state.Say(i); s != nil && s.Source == source {
			return true
		}
	}
	return false
}

// toldToStop tells whether one of the slots that were read is a stop.
func (r *Run) toldToStop() bool {
	for k := 1; k <= r.state.Ctls(); k++ {
		if r.state.Ctl(k).Act == schema.CtlStop {
			return true
		}
	}
	return false
}

// unasked is the model of a stopped run.
type unasked struct{}

func (unasked) Generate(context.Context, *model.Request) (*model.Response, error) {
	return nil, ErrStopped
}
