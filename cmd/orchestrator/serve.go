package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/session"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

// ServeCmd is the command serve.
type ServeCmd struct {
	File            []string      `short:"f" default:"agent.yaml" type:"path" placeholder:"FILE" help:"Agent file (agent.yaml); its id is the name under which runs of it are started. May be repeated."`
	Slots           int           `default:"16" placeholder:"N" help:"Runs at once (16)."`
	Drain           time.Duration `default:"20s" help:"After a signal, how long the tool calls of this process's runs may take to settle before others get the runs all the same."`
	ApprovalWebhook string        `placeholder:"URL" help:"Post to this address when a call waits for an approval: the run, the call, the tool and why, without arguments."`
	placeFlags
	principalFlags
}

// maxHosted is how many runs one process may work on at once.
const maxHosted = 4096

// Validate checks what kong cannot.
func (c *ServeCmd) Validate() error {
	switch {
	case c.Slots < 1 || c.Slots > maxHosted:
		return fmt.Errorf("--slots %d: want 1 to %d", c.Slots, maxHosted)
	case c.Drain <= 0:
		return fmt.Errorf("--drain %v: want more than 0s", c.Drain)
	}
	return c.placeFlags.Validate()
}

// Run works on runs until ctx ends, then hands back those that are not finished. An error says that some were left.
func (c *ServeCmd) Run(ctx context.Context, app *cli.App) error {
	s, err := c.hire(app)
	if err != nil {
		return cli.Usagef("serve: %w", err)
	}
	if err := c.complete(); err != nil { // or a wrong scope would fail every run
		return err
	}
	if c.URL == "" && c.Data == "" {
		return cli.Usagef("serve: where are the runs? Name the server (--nats, NATS_URL), or the directory of an embedded one (--data)")
	}
	cli.IgnoreBrokenPipe()
	app = talkative(app)
	app.SaySignals(func(string) {
		app.Log.Info("taking no more runs, handing back what is not finished; once more ends at once")
	})
	at, err := c.Open(ctx, app, c.fleet())
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer at.Close()
	if err := c.serve(ctx, app, at, s); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// admit returns on whose behalf a run acts: whom its message names, and otherwise what the flags say. Who states no
// authority has that of the agent's file.
func (c *ServeCmd) admit(call *schema.Call, spec schema.AgentSpec) (schema.Principal, error) {
	p := call.Principal
	if p.ID == "" {
		p.ID, p.Tenant = cmp.Or(c.As, anyone), cmp.Or(p.Tenant, c.Tenant)
	}
	if len(p.Scopes) == 0 {
		p.Scopes = c.Scope
	}
	if len(p.Scopes) == 0 {
		p.Scopes = fileScopes(spec)
	}
	return p, nil
}

func (c *ServeCmd) serve(ctx context.Context, app *cli.App, at *session.Session, s *staff) error {
	s.bus = at.Bus
	hook, err := newWebhook(c.ApprovalWebhook, app.Log)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	defer hook.wait()
	host, err := loop.NewHost(loop.HostConfig{
		Config: loop.Config{Bus: at.Bus, Instance: at.Bus.Instance(), Logger: app.Log, Events: hook.event}, Find: s.find, Govern: govern, Equip: s.equip, Admit: c.admit,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(app.Out, "orchestrator %s, %d slots: %s\n", at.Bus.Instance(), c.Slots, strings.Join(s.names(), ", "))
	if url := at.URL(); url != "" {
		fmt.Fprintf(app.Out, "others on this machine use it with NATS_URL=%s\n", url)
	}
	return at.Bus.Host(ctx, bus.Hosting{Slots: c.Slots, Host: host, Agents: s.tools(), Drain: c.Drain})
}

// talkative returns app with logs that say what is done, not only what went wrong.
func talkative(app *cli.App) *cli.App {
	if app.Verbose {
		return app
	}
	changed := *app
	changed.Log = slog.New(tracing.NewLogHandler(slog.NewTextHandler(app.Err, &slog.HandlerOptions{Level: slog.LevelInfo})))
	return &changed
}
