package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/schema"
)

// takenWithin is how long a detached run waits for an orchestrator before the user is told that none has come.
const takenWithin = 5 * time.Second

// detachFlags have the run done by an orchestrator that serves its agent.
type detachFlags struct {
	Detach bool   `help:"Leave the run to an orchestrator that serves its agent (the command serve), and print its id."`
	Agent  string `placeholder:"NAME" help:"With --detach: the agent, in place of the id of an agent file."`
	Keep   bool   `help:"With --detach: keep the run open after its answer, for what runs say tells it."`
}

// checkDetach finds flags that have no meaning together.
func (c *RunCmd) checkDetach() error {
	switch {
	case !c.Detach && (c.Agent != "" || c.Keep):
		return cli.Usagef("run: --agent and --keep need --detach")
	case c.Detach && c.URL == "":
		return cli.Usagef("run --detach: where do orchestrators serve? Name the server (--nats, NATS_URL)")
	case c.Detach && c.Resume != "":
		return cli.Usagef("run --detach: a run that is left is taken over by whoever serves its agent, without --resume")
	case c.Detach && c.Record != "":
		return cli.Usagef("run --detach: the run is recorded where it runs, not by --record")
	}
	return nil
}

// detach starts a run that others work on. That nobody has taken it after a while is no failure: it is queued.
func (c *RunCmd) detach(ctx context.Context, app *cli.App, task string) error {
	if err := c.loadEnv(); err != nil {
		return cli.Usagef("%w", err)
	}
	if err := c.complete(); err != nil {
		return err
	}
	agent := c.Agent
	if agent == "" {
		spec, err := loadAgent(app, c.File)
		if err != nil {
			return cli.Usagef("%w", err)
		}
		agent = spec.ID
	}
	acts := schema.Principal{ID: cmp.Or(c.As, localUser()), Tenant: c.Tenant, Scopes: c.Scope} // without scopes: whoever takes the run decides
	s, err := c.Open(ctx, app)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	defer s.Close()
	args, err := json.Marshal(schema.AgentArgs{Task: task, Keep: c.Keep})
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	call := &schema.Call{Run: schema.NewID(), Tool: agent, Args: schema.JSONText(args), Principal: acts}
	if err := s.Bus.StartRun(ctx, call); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	c.sayStarted(app, call)
	if !taken(ctx, s.Bus, call.Run) && ctx.Err() == nil {
		fmt.Fprintf(app.Err, "%s: run: nobody has taken the run within %v; it is queued until an orchestrator that serves the agent %s has a free slot (`orchestrator serve`)\n",
			app.Program, takenWithin, view.Clean(agent))
	}
	return nil
}

// startedRun is a run that was left to others, in a stream of JSON.
type startedRun struct {
	Type  string `json:"type"` // "started"
	Run   string `json:"run"`
	Agent string `json:"agent"`
}

func (c *RunCmd) sayStarted(app *cli.App, call *schema.Call) {
	switch {
	case c.Quiet:
		fmt.Fprintln(app.Out, call.Run)
		return
	case c.JSON:
		view.New(view.Config{Out: app.Out, Format: view.JSON}).Put(startedRun{"started", call.Run, call.Tool})
		return
	}
	fmt.Fprintf(app.Out, "run %s of agent %s\n", call.Run, view.Clean(call.Tool))
	fmt.Fprintf(app.Out, "  watch it  %s runs watch %s\n", app.Program, call.Run)
	if c.Keep {
		fmt.Fprintf(app.Out, "  go on     %s runs say %s \"…\"\n", app.Program, call.Run)
		fmt.Fprintf(app.Out, "  end it    %s runs close %s\n", app.Program, call.Run)
	}
	fmt.Fprintf(app.Out, "  stop it   %s runs stop %s\n", app.Program, call.Run)
}

// taken waits for the first fact of a run.
func taken(ctx context.Context, b *bus.Bus, run string) bool {
	ctx, cancel := context.WithTimeout(ctx, takenWithin)
	defer cancel()
	for _, err := range b.Follow(ctx, run) {
		return err == nil
	}
	return false
}
