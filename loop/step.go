package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

// step is one turn: ask, decide, record, execute. It returns the answer when the turn ended the exchange. limit is
// the limit that made it the last turn, "" for any other.
func (x *exchange) step(limit schema.Reason) (answer *schema.Answer, err error) {
	n, began := x.state.Turns()+1, time.Now()
	x.emit(Event{Type: EventStepStart, Turn: n, Reason: limit})
	_, x.span = tracing.StartTurn(x.ctx, x.id, n)
	defer func() {
		tracing.End(x.span, err)
		x.emit(Event{Type: EventStepEnd, Turn: n, ElapsedMS: time.Since(began).Milliseconds()})
	}()
	ctx, cancel := x.bound(limit)
	defer cancel()
	tools, err := x.tools(ctx, limit)
	if err != nil {
		return x.failed(ctx, n, limit, schema.ReasonNoTools, err)
	}
	r, err := x.consult(ctx, n, x.shown(tools))
	switch {
	case err != nil:
		return nil, err
	case r.err != nil:
		return x.failed(ctx, n, limit, reasonOf(r.err), r.err)
	}
	t, resp := x.turn(n, r), r.resp
	if err := x.plan(t, resp.Calls, tools, blocked(resp.Finish, limit)); err != nil {
		return x.failed(ctx, n, limit, schema.ReasonModel, err)
	}
	if err := x.guarded(schema.TurnKey(n), t); err != nil {
		return nil, err
	}
	if err := x.execute(t); err != nil {
		return nil, err
	}
	x.excuse(t)
	return x.conclude(t, limit)
}

// bound returns the context of a turn's model request: the rest of the wall clock, or of a last turn its own time.
func (x *exchange) bound(limit schema.Reason) (context.Context, context.CancelFunc) {
	ctx := trace.ContextWithSpan(x.stop.model, x.span)
	switch {
	case limit != "":
		return context.WithTimeoutCause(ctx, x.agent.cfg.FinalTurn, errWallClock)
	case x.until.IsZero():
		return context.WithCancel(ctx)
	default:
		return context.WithDeadlineCause(ctx, x.until, errWallClock)
	}
}

// tools returns what the model sees: nothing in a last turn.
func (x *exchange) tools(ctx context.Context, limit schema.Reason) ([]schema.Tool, error) {
	if limit != "" {
		return nil, nil
	}
	var tools []schema.Tool
	var err error
	if x.agent.cfg.Registry != nil {
		tools, err = x.agent.cfg.Registry.Tools(ctx)
	}
	if err == nil {
		tools, err = x.withSubagents(tools)
	}
	return x.withLookup(x.withReadOutput(tools)), err
}

// request returns the request of turn n, and the last say that is in it.
func (x *exchange) request(n int, tools []schema.Tool) (req *model.Request, said int) {
	spec := x.agent.cfg.Agent
	msgs, said := x.state.PromptUpTo(x.readable())
	return &model.Request{Agent: spec.ID, Turn: n, Messages: msgs, Tools: tools, Options: spec.Model.Options}, said
}

// reply is what a model said to a turn's request.
type reply struct {
	resp    *model.Response
	err     error
	said    int   // last say that was in the request
	started int64 // of the request, Unix ms
}

// consult asks the model for turn n, with a memory that is compacted before when that is due, and once more when the
// prompt turns out too large. The error is trouble with the run, not with the model.
func (x *exchange) consult(ctx context.Context, n int, tools []schema.Tool) (reply, error) {
	if err := x.compactIfDue(ctx, n, tools); err != nil {
		return reply{}, err
	}
	if ctx.Err() != nil { // the run was stopped, or its time ran out, while a summary was written
		return reply{err: context.Cause(ctx)}, nil
	}
	r := x.askTurn(ctx, n, tools)
	if r.err == nil || reasonOf(r.err) != schema.ReasonContext {
		return r, nil
	}
	smaller, err := x.compact(ctx, n, schema.TriggerOverflow, tools)
	if err == nil && smaller {
		r = x.askTurn(ctx, n, tools)
	}
	return r, err
}

func (x *exchange) askTurn(ctx context.Context, n int, tools []schema.Tool) (r reply) {
	req, said := x.request(n, tools)
	r.said, r.started = said, nowMS()
	if r.err = x.hookRequest(ctx, req); r.err == nil {
		r.resp, r.err = x.ask(ctx, req)
	}
	return r
}

func (x *exchange) turn(n int, r reply) *schema.Turn {
	resp := r.resp
	return &schema.Turn{
		N: n, Own: x.own, Say: r.said, Fold: x.folded(), Model: resp.Model, Text: schema.CleanText(resp.Text), Items: resp.Items,
		Finish: resp.Finish, Usage: resp.Usage, StartedMS: r.started, EndedMS: nowMS(),
	}
}

// blocked returns the decision about all calls of an answer that may not call, nil when it may.
func blocked(finish schema.Finish, limit schema.Reason) *schema.Decision {
	switch {
	case limit != "":
		return &schema.Decision{Action: schema.ActionDeny, Rule: "limit", Text: "a limit of this run is reached (" + string(limit) + "), tools cannot be called any more"}
	case finish == schema.FinishLength:
		return &schema.Decision{
			Action: schema.ActionInvalid, Rule: "output_limit", Type: schema.InvalidArguments,
			Text: "the answer was cut by the output limit, so none of its calls ran: send smaller arguments, or fewer calls at a time",
		}
	case finish == schema.FinishRefused:
		return &schema.Decision{Action: schema.ActionDeny, Rule: "refused", Text: "the answer was refused by the model's provider, so none of its calls ran"}
	}
	return nil
}

// conclude ends the exchange after a turn that was the last one, and counts repetitions after any other.
func (x *exchange) conclude(t *schema.Turn, limit schema.Reason) (*schema.Answer, error) {
	switch {
	case limit != "":
		return x.finish(t.Text, limit, x.limitText(limit))
	case t.Finish == schema.FinishRefused:
		return x.finish(t.Text, schema.ReasonRefused, "the model or its provider refused to answer")
	case x.aborts(t) != "":
		return x.finish("", schema.ReasonAborted, x.aborts(t))
	case len(t.Calls) > 0:
		if !x.agent.cfg.NoLimits {
			x.tally.add(t, x.state)
		}
		return nil, nil
	case t.Finish == schema.FinishLength:
		return x.finish(t.Text, schema.ReasonDone, "the answer was cut by the model's output limit")
	}
	return x.finish(t.Text, schema.ReasonDone, "")
}

// aborts says which call of a settled turn ends the run by its failure, "" when none does.
func (x *exchange) aborts(t *schema.Turn) string {
	for i := range t.Calls {
		r := x.state.Result(t.N, i)
		if r == nil || r.Error == nil || !t.Calls[i].Aborts && !r.Aborts {
			continue
		}
		switch r.Error.Type {
		case schema.Denied, schema.InvalidArguments, schema.UnknownTool: // it is not the tool that failed
		default:
			return fmt.Sprintf("the tool %s failed, which ends the run: %s", t.Calls[i].Tool, r.Error.Message)
		}
	}
	return ""
}

// failed ends the exchange after a turn without an answer of the model; when the wall clock cut it, the exchange goes
// on to its last turn instead (no answer, no error).
func (x *exchange) failed(ctx context.Context, n int, limit, reason schema.Reason, err error) (*schema.Answer, error) {
	cause := context.Cause(ctx)
	switch {
	case x.stop.model.Err() != nil:
		return nil, context.Cause(x.stop.model)
	case limit == "" && errors.Is(cause, errWallClock):
		return nil, nil
	case errors.Is(err, model.ErrEnd):
		return x.finish("", reason, "")
	case limit != "":
		// The last turn brought nothing: the limit stays the reason.
		reason = limit
	}
	x.emit(Event{Type: EventError, Turn: n, Error: err.Error()})
	return x.finish("", reason, err.Error())
}

// reasonOf maps a failed model request to the reason its exchange ends with.
func reasonOf(err error) schema.Reason {
	if errors.Is(err, model.ErrEnd) {
		return schema.ReasonEnd
	}
	var e *model.Error
	if errors.As(err, &e) {
		switch e.Kind {
		case model.Auth:
			return schema.ReasonAuth
		case model.Overflow:
			return schema.ReasonContext
		case model.Refused:
			return schema.ReasonRefused
		}
	}
	return schema.ReasonModel
}
