package loop

import (
	"context"
	"fmt"

	"github.com/jetcrew/jetcrew/schema"
)

// Resume takes over a run that an earlier process left, because it was killed, so that this one goes on in the
// foreground. Whoever has the run loses its next write. The agent is the one that the run was opened with; of a's it has
// the model and the tools. What is Unfinished is ended by Work, whose wall clock begins anew; a run that was stopped
// meanwhile is closed by it. The caller ends the run by Close. Errors beside trouble with the transport: ErrNoRun,
// ErrClosed, ErrNotResumable.
func (a *Agent) Resume(ctx context.Context, run string) (*Run, error) {
	r, err := a.resume(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("resume run %.80s: %w", run, err)
	}
	r.logTaken(ctx)
	return r, nil
}

func (a *Agent) resume(ctx context.Context, run string) (*Run, error) {
	if !schema.ValidID(run) {
		return nil, ErrNoRun // no id is like that
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r := newRun(a, run)
	r.resumed, r.stays = true, true
	if err := r.refresh(ctx); err != nil {
		return nil, err
	}
	open := r.state.Open()
	switch {
	case r.state.Closed() != nil:
		return nil, ErrClosed
	case open == nil:
		return nil, ErrNoRun
	case !ofAgent(open):
		return nil, fmt.Errorf("%w: it is not an agent's", ErrNotResumable)
	case open.Chain != a.cfg.Chain:
		return nil, fmt.Errorf("%w: it was started with the code chain %.80q, this process has %.80q", ErrNotResumable, open.Chain, a.cfg.Chain)
	}
	if err := r.employ(a.cfg); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotResumable, err)
	}
	_, err := r.seize(ctx, schema.RunMessage{Run: run})
	return r, err
}

// ofAgent tells whether a run is one that a model leads.
func ofAgent(open *schema.Open) bool { return open.Agent != nil && open.Kind == schema.RunAgent }

// employ gives an opened run its agent: the one it was opened with, and the rest of cfg, which also has a principal for a
// run that names none.
func (r *Run) employ(cfg Config) error {
	open := r.state.Open()
	cfg.Agent, cfg.Principal = *open.Agent, completed(open.Principal, cfg.Principal)
	if err := cfg.validate(); err != nil {
		return err
	}
	r.agent = &Agent{cfg: cfg, validator: schema.NewValidator()}
	return nil
}
