package main

import (
	"context"
	"fmt"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/schema"
)

// RunsCloseCmd is the command runs close.
type RunsCloseCmd struct{ runFlags }

// Run asks for the close. Who works on the run writes it; a run that nobody works on is woken.
func (c *RunsCloseCmd) Run(ctx context.Context, app *cli.App) error {
	s, id, err := c.find(ctx, app)
	if err != nil {
		return fmt.Errorf("runs close: %w", err)
	}
	defer s.Close()
	stop, err := s.Bus.StopRun(ctx, id, schema.WhyClose)
	if err != nil {
		return fmt.Errorf("runs close: %w", err)
	}
	fmt.Fprintf(app.Out, "run %s: is asked to close in slot ctl.%d\n", id, stop.Slot)
	return nil
}
