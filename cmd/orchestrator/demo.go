package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/session"
	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/schema"
)

// DemoCmd is the command demo.
type DemoCmd struct {
	Root string `default:"." type:"existingdir" placeholder:"DIR" help:"Directory of the workers' file and shell tools."`
	showFlags
}

// demoWorkers is how many worker processes the demo starts; one of them is killed.
const demoWorkers = 3

// Run plays the demo and checks that everything it shows is true.
func (c *DemoCmd) Run(ctx context.Context, app *cli.App) (err error) {
	d := &demo{root: c.Root}
	d.view = view.New(view.Config{Out: app.Out, Format: c.format(app), Name: d.name})
	defer d.view.Close()
	app = behind(app, d.view)
	d.session, err = session.Open(ctx, session.Options{
		Instance: app.Instance, Logger: app.Log, Verbose: app.Verbose,
		Fleet: []session.Member{cli.ToolFleet(c.Root, demoWorkers)},
	})
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer d.session.Close()
	if err := d.play(ctx, app); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return d.report(ctx, app)
}

// demo is one showing.
type demo struct {
	session *session.Session
	view    *view.View
	root    string

	run      *loop.Run
	state    *memory.Run // of run
	answer   schema.Answer
	assassin assassin
	arrivals arrivals
}

// play runs the recorded agent to its answer.
func (d *demo) play(ctx context.Context, app *cli.App) error {
	story, err := newStory(d.root)
	if err != nil {
		return err
	}
	selection := d.session.Bus.Select(story.spec.Tools...)
	if err := selection.Wait(ctx, toolsWithin); err != nil {
		return err
	}
	agent, err := loop.New(loop.Config{
		Agent: story.spec, Model: story, Bus: d.session.Bus, Registry: selection, Events: d.event,
		Principal: schema.Principal{ID: localUser(), Scopes: fileScopes(story.spec)}, Instance: d.session.Bus.Instance(), Logger: app.Log,
	})
	if err != nil {
		return err
	}
	if d.run, err = agent.Start(ctx, ""); err != nil {
		return err
	}
	d.state = d.run.State()
	d.greet(story)
	return d.work(ctx, story)
}

// work tells the agent its task and has a worker killed on the way.
func (d *demo) work(ctx context.Context, story *story) error {
	unfollow, err := follow(ctx, d.session.Bus, d.run.ID(), d.view)
	if err != nil {
		return err
	}
	defer unfollow()
	d.assassin.prepare(d.session, d.view, story.victim)
	unhear, err := d.session.Bus.WatchProgress(d.run.ID(), d.assassin.hear)
	if err != nil {
		return err
	}
	d.answer, err = d.run.Say(ctx, story.task)
	unhear()
	d.assassin.wait()
	if err != nil {
		return err
	}
	return d.run.Close(ctx)
}

// event shows an event and notes what the killing and the report need.
func (d *demo) event(e loop.Event) {
	d.view.Event(e)
	d.assassin.event(e)
	d.arrivals.event(e)
}

func (d *demo) greet(story *story) {
	st := d.view.Style()
	d.view.Print(
		st.Bold("Jetcrew demo")+": a recorded model, real tools, real JetStream in this process.",
		"  workers  "+d.pids(),
		"  tools    files and shell, in "+view.Clean(d.root),
		"  task     "+story.task,
		"",
	)
}

func (d *demo) name(instance string) string { return workerName(d.session, instance) }

// pids lists the worker processes.
func (d *demo) pids() string {
	text := ""
	for i, p := range d.session.Fleet.Processes() {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%d (pid %d)", i+1, p.PID)
	}
	return text
}

// errDemo is returned when the demo did not show what it promises.
var errDemo = errors.New("the demo did not show what it promises; please report it with this output")
