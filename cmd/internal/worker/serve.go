package worker

import (
	"context"
	"errors"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/executor/toolkit"
)

// Serve is the command that executes calls with real tools.
type Serve struct {
	Process
	Queue []Queue `required:"" placeholder:"NAME[=SLOTS]" help:"Queue to serve, which is also the name of its toolkit (files, shell), and how many calls run at once (4). May be repeated."`
	Root  string  `default:"." type:"existingdir" help:"Directory that the tools work in and do not leave."`
}

// Run serves until ctx ends, then drains.
func (s *Serve) Run(ctx context.Context, app *cli.App) error {
	var queues []bus.Worker
	var errs []error
	for _, q := range s.Queue {
		set, err := toolSet(q.Name, s.Root, app)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		queues = append(queues, bus.Worker{Queue: q.Name, Slots: q.Slots, Tools: set})
	}
	if err := errors.Join(errs...); err != nil {
		return &cli.ExitError{Code: cli.CodeUsage, Err: err}
	}
	return s.work(ctx, app, queues)
}

func toolSet(queue, root string, app *cli.App) (*executor.Set, error) {
	tools, err := toolkit.Named(queue, root)
	if err != nil {
		return nil, err
	}
	return executor.Config{Queue: queue, Logger: app.Log}.NewSet(tools...)
}
