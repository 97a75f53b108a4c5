package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
)

// checkResume finds a --resume that cannot know any run.
func (f *agentFlags) checkResume() error {
	if f.URL == "" && f.Data == "" {
		return errors.New("--resume: where is the run? Name the server (--nats, NATS_URL), or the directory of an embedded one (--data)")
	}
	return nil
}

// find looks up the run that is gone on with, and makes the client of its agent's model.
func (f *agentFlags) find(ctx context.Context, d *desk) (model loop.Model, err error) {
	if d.resumed, err = findRun(ctx, d.session.Bus, f.Resume); err != nil {
		return nil, err
	}
	open, err := opening(ctx, d.session.Bus, d.resumed)
	switch {
	case err != nil:
		return nil, err
	case open.Agent == nil:
		return nil, fmt.Errorf("run %s: %w: it is one call of a tool", d.resumed, loop.ErrNotResumable)
	}
	d.spec = *open.Agent
	return newModel(d.spec, filepath.Dir(f.File))
}

// opening returns the first fact of a run that is there.
func opening(ctx context.Context, b *bus.Bus, run string) (*schema.Open, error) {
	facts, err := b.Facts(ctx, run, 0, schema.KindOpen)
	if err != nil {
		return nil, err
	}
	if len(facts) == 0 {
		return nil, fmt.Errorf("run %s: its first fact is not readable yet, try again", run)
	}
	open := new(schema.Open)
	if err := schema.Decode(facts[0].Data, open); err != nil {
		return nil, fmt.Errorf("run %s: its first fact: %w", run, err)
	}
	return open, nil
}

// finish ends what is left of a run, and returns its last answer. Whoever has nothing further to say is told so where
// nothing is left either.
func (d *desk) finish(ctx context.Context, run *loop.Run, last bool) (answer schema.Answer, err error) {
	d.idle = d.resumed != "" && !run.Unfinished()
	for err == nil && run.Unfinished() {
		answer, err = run.Work(ctx)
	}
	if !d.idle || !last {
		return answer, err
	}
	a := run.State().Answer(run.State().Answers())
	if a == nil {
		return answer, cli.Usagef("nothing was said in run %s before it was left: what is the task?", run.ID())
	}
	return *a, nil
}
