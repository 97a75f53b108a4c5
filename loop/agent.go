package loop

import (
	"context"
	"errors"
	"fmt"

	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

// Agent starts runs of one agent. It may be used by several goroutines at once.
type Agent struct {
	cfg       Config
	validator *schema.Validator
}

// New returns an agent, or an error that names everything missing in cfg.
func New(cfg Config) (*Agent, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("new agent %q: %w", cfg.Agent.ID, err)
	}
	if g := cfg.Agent.Governance; g != nil {
		cfg.Principal.Scopes = schema.Within(cfg.Principal.Scopes, g.Authority)
	}
	return &Agent{cfg: cfg, validator: schema.NewValidator()}, nil
}

// Run has a task done in a run of its own and closes it. The answer's Reason says how it ended; an answer that a
// limit or a failing model ended is not an error. When ctx ends, running calls are cancelled and settle, and the run
// is stopped for good, or left open as Run.Work says.
func (a *Agent) Run(ctx context.Context, task string) (schema.Answer, error) {
	r, err := a.Start(ctx, "")
	if err != nil {
		return schema.Answer{}, err
	}
	answer, err := r.Say(ctx, task)
	for err == nil {
		// A message that came from elsewhere in the meantime is answered too.
		if err = r.Close(context.WithoutCancel(ctx)); !errors.Is(err, ErrUnanswered) {
			break
		}
		answer, err = r.Work(ctx)
	}
	if err != nil {
		r.leave(err)
	}
	return answer, err
}

// Start opens a run under the id run ("": a fresh one) and takes it. The caller ends it by Close. ErrRunExists: the
// id is taken; Resume goes on with such a run.
func (a *Agent) Start(ctx context.Context, run string) (*Run, error) {
	if run == "" {
		run = schema.NewID()
	}
	if !schema.ValidID(run) {
		return nil, fmt.Errorf("start run %.80q: an id is 1 to 64 of A-Z, a-z, 0-9, '_', '-'", run)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("start run %s: %w", run, context.Cause(ctx))
	}
	r := newRun(a, run)
	r.events.sink, r.events.log, r.events.run = a.cfg.Events, a.cfg.Logger, run
	if err := r.open(ctx); err != nil {
		tracing.End(r.span, err)
		return nil, fmt.Errorf("start run %s: %w", run, err)
	}
	r.events.emit(Event{Type: EventRunStart})
	return r, nil
}

// open writes the first facts: open, then the own slot.
func (r *Run) open(ctx context.Context) error {
	a := r.agent
	spec := &a.cfg.Agent
	ctx, r.span = r.startSpan(ctx, spec)
	open := &schema.Open{
		Kind: schema.RunAgent, Agent: spec, Chain: a.cfg.Chain, Principal: a.cfg.Principal, Trace: tracing.TraceMap(ctx), AtMS: nowMS(),
	}
	if err := r.write(ctx, schema.OpenKey(), open, schema.Key{}); err != nil {
		if errors.Is(err, schema.ErrExists) {
			return ErrRunExists
		}
		return err
	}
	stop, err := a.cfg.Journal.Watch(ctx, r.id, r.heard)
	if err != nil {
		return err
	}
	r.own = 1
	own := &schema.Ctl{Act: schema.CtlOwn, Instance: a.cfg.Instance, AtMS: nowMS()}
	if err := r.write(ctx, schema.CtlKey(r.own), own, schema.Key{}); err != nil {
		stop()
		if errors.Is(err, schema.ErrExists) {
			return ErrFenced
		}
		return err
	}
	r.unwatch = stop
	return nil
}
