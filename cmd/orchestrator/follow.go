package main

import (
	"context"
	"fmt"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/session"
	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/schema"
)

// follow tells the view which worker has which call of a run, until stop is called: the begin of a run-once call says
// it, and the progress of any call.
func follow(ctx context.Context, b *bus.Bus, run string, v *view.View) (stop func(), err error) {
	unwatch, err := b.Watch(ctx, run, func(f schema.Fact) {
		var begin schema.Begin
		if f.Key.Kind == schema.KindBegin && schema.Decode(f.Data, &begin) == nil {
			v.Working(f.Key.N, f.Key.I, begin.Instance)
		}
	})
	if err != nil {
		return nil, err
	}
	unhear, err := b.WatchProgress(run, func(turn, index int, p bus.Progress) { v.Working(turn, index, p.Worker) })
	if err != nil {
		unwatch()
		return nil, err
	}
	return func() { unhear(); unwatch() }, nil
}

// workerName returns what people see of an instance: the session's own workers are numbered in the order of their
// start, and what this process settled itself says so.
func workerName(s *session.Session, instance string) string {
	for i, p := range s.Fleet.Processes() {
		if p.Instance == instance {
			return fmt.Sprintf("worker %d", i+1)
		}
	}
	if instance == s.Bus.Instance() {
		return "orchestrator"
	}
	return workerOf(instance)
}
