package loop

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/schema"
)

// writeBound is how long one write or read of facts may take before the transport counts as gone. It does not end
// with the caller's context: a fact that is half written, by a caller who has left, is the worst of both.
const writeBound = 30 * time.Second

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
	return &Agent{cfg: cfg, validator: schema.NewValidator()}, nil
}

// Run has a task done in a run of its own and closes it. The answer's Reason says how it ended; an answer that a
// limit or a failing model ended is not an error. When ctx ends, running calls are cancelled and settle, and the run
// is stopped for good.
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
// id is taken.
func (a *Agent) Start(ctx context.Context, run string) (*Run, error) {
	if run == "" {
		run = schema.NewID()
	}
	if !schema.ValidID(run) {
		return nil, fmt.Errorf("start run %.80q: an id is 1 to 64 of A-Z, a-z, 0-9, '_', '-'", run)
	}
	r := &Run{agent: a, id: run, working: make(chan struct{}, 1), state: memory.New(), stopped: make(chan struct{}), lost: make(chan struct{})}
	r.events.sink, r.events.run = a.cfg.Events, run
	if err := r.open(ctx); err != nil {
		return nil, fmt.Errorf("start run %s: %w", run, err)
	}
	r.events.emit(Event{Type: EventRunStart})
	return r, nil
}

// open writes the first facts: open, then the own slot.
func (r *Run) open(ctx context.Context) error {
	a := r.agent
	open := &schema.Open{Kind: schema.RunAgent, Agent: &a.cfg.Agent, Principal: a.cfg.Principal, AtMS: nowMS()}
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

// write records a fact and puts it into the run's state.
func (r *Run) write(ctx context.Context, key schema.Key, p schema.Encodable, unless schema.Key) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBound)
	defer cancel()
	seq, err := r.agent.cfg.Journal.Append(ctx, r.id, key, p, unless)
	if err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	raise(&r.seq, seq)
	r.state.Put(key, p)
	return nil
}

// refresh reads all facts up to the last one this process wrote.
func (r *Run) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBound)
	defer cancel()
	facts, err := r.agent.cfg.Journal.Facts(ctx, r.id, r.seq.Load())
	if err != nil {
		return fmt.Errorf("read facts: %w", err)
	}
	for _, f := range facts {
		r.apply(f)
	}
	return nil
}

func (r *Run) apply(f schema.Fact) {
	if err := r.state.Apply(f); err != nil {
		r.agent.cfg.Logger.Warn("a fact cannot be read", "run", r.id, "fact", f.Key.String(), "error", err)
	}
}

func raise(a *atomic.Uint64, to uint64) {
	for old := a.Load(); old < to && !a.CompareAndSwap(old, to); old = a.Load() {
	}
}

func nowMS() int64 { return time.Now().UnixMilli() }
