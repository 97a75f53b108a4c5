package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

// maxTakes is how many consecutive owners may take a run for the same message without a new fact before it is given up.
const maxTakes = 3

// maxUnknown is how often a wake-up comes for a run that nobody knows.
const maxUnknown = 20

// maxUnserved is how often the message of a stopped run, which nobody has opened, comes to those who do not serve its
// agent, before nobody seems to.
const maxUnserved = 10

// How long a message that is given back stays away.
const (
	busyDelay   = 2 * time.Second
	cannotDelay = 5 * time.Second        // at most; others may serve what this process does not, so
	cannotFirst = 100 * time.Millisecond // it begins with this, and grows by it
)

// HostConfig is what a Host is made of. All but Guards and what Config fills in are required.
type HostConfig struct {
	Config // of every run; Agent, Model and Registry come from the functions below

	// Find returns the agent that a new run is started with; false: it is not served here.
	Find func(name string) (schema.AgentSpec, bool)
	// Admit returns on whose behalf a run is started, and what it may do, or why it may not be started. Default: the
	// principal of the call, with what it leaves out from Config.Principal.
	Admit func(call *schema.Call, spec schema.AgentSpec) (schema.Principal, error)
	// KeepFor is how long a kept conversation stays open after its last answer; default 7 days.
	KeepFor time.Duration

	// Govern returns the guards that an agent's own file asks for, which come after those of Config; nil: there are none.
	Govern func(spec schema.AgentSpec) ([]Guard, error)
	// Equip returns the model and the tools of an agent; an error: this process cannot run it.
	Equip func(ctx context.Context, spec schema.AgentSpec) (Model, Registry, error)
}

// Host works on the runs that messages of the queue agents bring, new ones and those that another orchestrator
// dropped. It may be used by several goroutines at once.
type Host struct{ cfg HostConfig }

// NewHost returns a host.
func NewHost(cfg HostConfig) (*Host, error) {
	if cfg.Find == nil || cfg.Equip == nil {
		return nil, errors.New("new host: Find and Equip are required")
	}
	cfg.Config, cfg.KeepFor = cfg.withDefaults(), cmp.Or(cfg.KeepFor, 7*24*time.Hour)
	return &Host{cfg}, nil
}

// Take works on the run of m until it is answered and closed, or is another's. The end of ctx has it handed back: the
// model is not asked any more, calls that run settle. The caller has made sure that no other owner is alive; should
// one be, it loses its next write.
func (h *Host) Take(ctx context.Context, m schema.RunMessage) schema.Taken {
	r, taken, err := h.take(ctx, m)
	if err == nil && r != nil {
		r.logTaken(ctx)
		taken = r.became(taken, r.carryOn(ctx, m))
		r.logLeft(ctx, taken)
		return taken
	}
	return r.became(taken, err)
}

// became says what becomes of the message of a run after err; taken is what is to become of it if all went well.
func (r *Run) became(taken schema.Taken, err error) schema.Taken {
	switch {
	case errors.Is(err, ErrParked):
		return r.dueBy(r.parkedTaken())
	case err == nil, errors.Is(err, ErrStopped), errors.Is(err, ErrClosed):
		return taken
	case errors.Is(err, ErrFenced):
		return schema.Taken{Act: schema.TakenLeave, Reason: err.Error()}
	case errors.Is(err, ErrYielded):
		return schema.Taken{Act: schema.TakenBusy, Reason: err.Error()}
	}
	return schema.Taken{Act: schema.TakenBusy, After: busyDelay, Reason: err.Error()}
}

// cannotAfter is how long a message stays away from a process that cannot work on its run. It grows slowly, since the
// server may deal the message out to the same process several times, and varies: messages that come again at one pace
// would be dealt out in one order, each to the same process for ever.
func cannotAfter(delivery uint64) time.Duration {
	d := min(cannotDelay, cannotFirst*time.Duration(min(max(delivery, 1), 1<<10)))
	return d - rand.N(d/2)
}

// take opens the run, or finds it open, and writes the own slot. A nil run says why there is none.
func (h *Host) take(ctx context.Context, m schema.RunMessage) (*Run, schema.Taken, error) {
	none := func(act schema.TakenAct, after time.Duration, why string) (*Run, schema.Taken, error) {
		return nil, schema.Taken{Act: act, After: after, Reason: why}, nil
	}
	r := newRun(&Agent{cfg: h.cfg.Config, validator: schema.NewValidator()}, m.Run)
	r.resumed, r.keepFor, r.yield = true, h.cfg.KeepFor, ctx.Done()
	defer func() {
		if r.span != nil && r.unwatch == nil {
			r.span.End() // opened here, worked on elsewhere
		}
	}()
	if err := r.refresh(ctx); err != nil {
		return nil, schema.Taken{}, err
	}
	if r.state.Open() == nil {
		if taken, err := h.open(ctx, r, m); err != nil || taken != nil {
			return nil, deref(taken), err
		}
	}
	open := r.state.Open()
	switch {
	case r.state.Closed() != nil:
		return none(schema.TakenDone, 0, "")
	case open == nil:
		return none(schema.TakenBusy, busyDelay, "the run's open fact is not readable yet")
	case !ofAgent(open):
		if m.Call == nil {
			return none(schema.TakenDone, 0, "") // there is nothing to wake
		}
		return none(schema.TakenDead, 0, "the run is not an agent's")
	}
	asked, registry, err := h.cfg.Equip(ctx, *open.Agent)
	if err != nil && r.toldToStop() { // which takes neither a model nor tools
		asked, registry, err = unasked{}, nil, nil
	}
	cfg := h.cfg.Config
	if err == nil && h.cfg.Govern != nil {
		var own []Guard
		if own, err = h.cfg.Govern(*open.Agent); r.toldToStop() { // which decides about nothing any more
			err = nil
		}
		cfg.Guards = slices.Concat(cfg.Guards, own)
	}
	if err == nil && open.Chain != cfg.Chain {
		err = fmt.Errorf("it was started with the code chain %.80q, this process has %.80q", open.Chain, cfg.Chain)
	}
	if err != nil {
		return none(schema.TakenCannot, cannotAfter(m.Delivery), fmt.Sprintf("agent %.80q cannot run here: %v", open.Agent.ID, err))
	}
	cfg.Model, cfg.Registry = asked, registry
	if err := r.employ(cfg); err != nil {
		return none(schema.TakenDead, 0, err.Error())
	}
	taken, err := r.seize(ctx, m)
	if err != nil {
		return nil, taken, err
	}
	return r, taken, nil
}

func (r *Run) startSpan(ctx context.Context, a *schema.AgentSpec) (context.Context, trace.Span) {
	return tracing.StartAgent(ctx, tracing.Agent{ID: a.ID, Run: r.id, Provider: a.Model.Provider, Model: a.Model.Name})
}

// seize writes the own slot, hears the run from then on, and reads it up to that slot. What it returns is what becomes of
// the message once the run is worked on.
func (r *Run) seize(ctx context.Context, m schema.RunMessage) (schema.Taken, error) {
	r.own = cmp.Or(m.Slot, r.state.Ctls()+1)
	own := &schema.Ctl{Act: schema.CtlOwn, Instance: r.agent.cfg.Instance, Seq: m.Seq, AtMS: nowMS()}
	for {
		err := r.write(ctx, schema.CtlKey(r.own), own, schema.Key{})
		if err == nil {
			break
		}
		if !errors.Is(err, schema.ErrExists) {
			return schema.Taken{}, err
		}
		if err := r.refresh(ctx); err != nil {
			return schema.Taken{}, err
		}
		if c := r.state.Ctl(r.own); !r.stays && (c == nil || c.Act != schema.CtlStop) {
			return schema.Taken{}, fmt.Errorf("slot %d is another's now", r.own)
		}
		r.own++
	}
	stop, err := r.agent.cfg.Journal.Watch(ctx, r.id, r.heard)
	if err != nil {
		return schema.Taken{}, err
	}
	r.unwatch = stop
	if r.span == nil {
		_, r.span = r.startSpan(tracing.FromTraceMap(ctx, r.state.Open().Trace), &r.agent.cfg.Agent)
	}
	r.events.sink, r.events.log, r.events.run = r.agent.cfg.Events, r.agent.cfg.Logger, r.id
	r.events.emit(Event{Type: EventRunStart})
	taken, err := r.survey(ctx, m.Seq)
	if err != nil {
		r.leave(err)
	}
	return taken, err
}

// survey reads everything up to the own slot, and stops the run when too many owners were lost over the same message. Who
// stays has none, and was told to go on.
func (r *Run) survey(ctx context.Context, seq uint64) (schema.Taken, error) {
	facts, err := r.agent.cfg.Journal.Facts(ctx, r.id, r.seq.Load())
	if err != nil {
		return schema.Taken{}, fmt.Errorf("read facts: %w", err)
	}
	for _, f := range facts {
		r.apply(f)
	}
	switch {
	case r.state.Closed() != nil:
		return schema.Taken{Act: schema.TakenDone}, ErrClosed
	case r.taken() != nil:
		return schema.Taken{}, ErrFenced
	}
	taken := schema.Taken{Act: schema.TakenDone}
	if n := takes(facts, seq); n > maxTakes && !r.stays {
		why := fmt.Sprintf("%d orchestrators were lost over this run without a step forward", n-1)
		if err := r.stopLost(ctx, why); err != nil {
			return schema.Taken{}, err
		}
		taken = schema.Taken{Act: schema.TakenDead, Reason: why}
		r.givenUp = why
	}
	if r.toldToStop() {
		r.heardStop.Do(func() { close(r.stopped) })
	}
	return taken, nil
}

// stopLost writes the stop of a run whose owners were lost, unless it is stopped already.
func (r *Run) stopLost(ctx context.Context, why string) error {
	if r.toldToStop() {
		return nil
	}
	slot := &schema.Ctl{Act: schema.CtlStop, Instance: r.agent.cfg.Instance, Why: why, AtMS: nowMS()}
	return r.write(ctx, schema.CtlKey(r.own+1), slot, schema.Key{})
}

// takes counts the last own slots that name the same message, the new one included, without another fact between them.
func takes(facts []schema.Fact, seq uint64) (n int) {
	for i := len(facts) - 1; i >= 0; i-- {
		var c schema.Ctl
		if facts[i].Key.Kind != schema.KindCtl || schema.Decode(facts[i].Data, &c) != nil {
			return n
		}
		if c.Act != schema.CtlOwn {
			continue
		}
		if c.Seq != seq {
			return n
		}
		n++
	}
	return n
}

// carryOn says what the message brings, once, and works until nothing is left to do.
func (r *Run) carryOn(ctx context.Context, m schema.RunMessage) error {
	ctx = context.WithoutCancel(ctx) // its end hands the run back, it does not stop it
	working, cancel, err := r.withinAttempt(ctx)
	if err != nil {
		r.leave(err)
		return err
	}
	defer cancel()
	if m.Call != nil {
		if err := r.sayTask(ctx, m); err != nil {
			r.leave(err)
			return err
		}
	}
	for {
		says := r.state.Says()
		for ; r.Unfinished(); says = r.state.Says() {
			if _, err := r.Work(working); err != nil {
				r.leave(err)
				return err
			}
		}
		if r.keeps(says) {
			r.leave(ErrParked)
			return ErrParked
		}
		if err := r.Close(ctx); !errors.Is(err, ErrUnanswered) {
			return err
		}
	}
}

// sayTask writes the task of a new run. Its source makes it one message however often it is written.
func (r *Run) sayTask(ctx context.Context, m schema.RunMessage) error {
	source := fmt.Sprintf(schema.SourceCall+"%s.%d.%d", m.Call.Run, m.Call.Turn, m.Call.Index)
	text, ok := task(m.Call.Args)
	if !ok || r.said(source, r.state.Says()) {
		return nil
	}
	_, err := r.tell(ctx, schema.Say{Role: schema.RoleUser, Text: r.hookedPrompt(ctx, text), Source: source})
	return err
}
