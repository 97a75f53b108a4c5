package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/session"
	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/agentfile"
	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

// toolsWithin is how long a run waits for workers that offer the tools its agent names.
const toolsWithin = 5 * time.Second

// agentCommands are the commands that run an agent.
type agentCommands struct {
	Run   RunCmd   `cmd:"" help:"Give an agent a task and print its answer."`
	Chat  ChatCmd  `cmd:"" help:"Talk with an agent."`
	Serve ServeCmd `cmd:"" help:"Work on the runs of agents that anybody starts, until a signal comes; run as many as you like."`
	Demo  DemoCmd  `cmd:"" help:"See a run: three workers, real tools, a recorded model, and one worker killed. Needs nothing."`
}

// showFlags say how a run is shown.
type showFlags struct {
	JSON  bool `name:"json" xor:"format" help:"Print the events, one JSON object a line."`
	Plain bool `xor:"format" help:"Print lines also on a terminal."`
}

// format returns the format of the view. Logs would tear a live view, so --verbose means lines.
func (f *showFlags) format(app *cli.App) view.Format {
	switch {
	case f.JSON:
		return view.JSON
	case f.Plain || app.Verbose:
		return view.Plain
	}
	return view.Auto
}

// placeFlags say what agents have around them.
type placeFlags struct {
	Env     string   `type:"path" placeholder:"FILE" help:"KEY=VALUE lines for the environment, such as keys of providers; default .env if there is one. What is set already wins."`
	Root    string   `default:"." type:"existingdir" placeholder:"DIR" help:"Directory of the embedded workers' file and shell tools."`
	Workers int      `default:"2" placeholder:"N" help:"Embedded worker processes (2)."`
	Limit   []string `placeholder:"TOOL=N" help:"At most N calls of the tool at once over all embedded workers. May be repeated."`
	Rate    []string `placeholder:"TOOL=N/s" help:"At most N starts of the tool in a second (/s), a minute (/m) or an hour (/h) at each embedded worker. May be repeated."`
	cli.Local
}

// fleet is the embedded workers.
func (f *placeFlags) fleet() session.Member {
	var flags []string
	for _, l := range f.Limit {
		flags = append(flags, "--limit", l)
	}
	for _, r := range f.Rate {
		flags = append(flags, "--rate", r)
	}
	return cli.ToolFleet(f.Root, f.Workers, flags...)
}

// agentFlags are what run and chat have in common.
type agentFlags struct {
	File   string   `short:"f" default:"agent.yaml" type:"path" placeholder:"FILE" help:"Agent file (agent.yaml); the command init writes one."`
	Resume string   `placeholder:"RUN" help:"Go on with a run that an earlier process left, with the agent that it was opened with. RUN is its id, or the beginning; the command runs list shows it."`
	Record string   `type:"path" placeholder:"FILE" help:"Write the run to FILE as a transcript that replay takes."`
	Also   []string `type:"path" placeholder:"FILE" help:"Further agent file that is served while this command runs, for the agent to hand tasks to. May be repeated."`
	Quiet  bool     `short:"q" xor:"format" help:"Print answers only."`
	showFlags
	placeFlags
	principalFlags
}

const maxWorkers = 64 // processes that one command may start

// Validate checks what kong cannot.
func (f *placeFlags) Validate() error {
	if f.Workers < 1 || f.Workers > maxWorkers {
		return fmt.Errorf("--workers %d: want 1 to %d", f.Workers, maxWorkers)
	}
	if f.URL != "" && len(f.Limit)+len(f.Rate) > 0 {
		return errors.New("--limit and --rate are for embedded workers; those of a server of your own have them from `toolworker serve`")
	}
	return nil
}

func (f *agentFlags) format(app *cli.App) view.Format {
	if f.Quiet {
		return view.Quiet
	}
	return f.showFlags.format(app)
}

// desk is an agent that is ready to work, and what it works with.
type desk struct {
	spec     schema.AgentSpec
	session  *session.Session
	view     *view.View
	registry loop.Registry
	agent    *loop.Agent
	record   recorder
	acts     schema.Principal // on whose behalf
	also     *alongside       // nil: nobody else is served here
	asker    *asker           // nil: nobody sits at the terminal
	served   []schema.Tool    // the agents that are served here
	data     string           // directory of the embedded server; empty: another server, or a temporary one
	json     bool             // events alone are shown
	idle     bool             // nothing was left to do in it
	opened   string           // id of the run
	resumed  string           // id of the run that is gone on with; empty: a new one is begun
}

// open reads the agent file, opens the session and waits for the agent's tools. What is wrong with the command line,
// the file or the environment is found before a process is started.
func (f *agentFlags) open(ctx context.Context, app *cli.App) (*desk, error) {
	d := &desk{}
	model, err := f.load(app, d)
	if err != nil {
		return nil, cli.Usagef("%w", err)
	}
	also, err := hire(app, f.Also)
	if err != nil {
		return nil, cli.Usagef("--also: %w", err)
	}
	if d.acts, err = f.principal(d.spec); err != nil {
		return nil, err
	}
	if d.record, err = newRecorder(f.Record); err != nil {
		return nil, cli.Usagef("%w", err)
	}
	d.json = f.JSON
	if f.URL == "" {
		d.data = f.Data
	}
	d.view = view.New(view.Config{Out: app.Out, Format: f.format(app), Name: func(id string) string { return workerName(d.session, id) }})
	app = behind(app, d.view)
	d.session, err = f.Open(ctx, app, f.fleet())
	if err == nil && f.Resume != "" {
		model, err = f.find(ctx, d)
	}
	if err == nil && len(f.Also) > 0 {
		d.served = also.tools()
		d.also, err = also.serve(app, d.session)
	}
	if err == nil {
		err = d.employ(ctx, app, model)
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// load reads the environment file and the agent file and makes the model client. The agent of a run that is resumed is
// found later.
func (f *agentFlags) load(app *cli.App, d *desk) (model loop.Model, err error) {
	if err = f.loadEnv(); err != nil {
		return nil, err
	}
	if f.Resume != "" {
		return nil, f.checkResume()
	}
	if d.spec, err = loadAgent(app, f.File); err != nil {
		return nil, err
	}
	if _, err := govern(d.spec); err != nil {
		return nil, err
	}
	return newModel(d.spec, filepath.Dir(f.File))
}

// loadEnv reads the environment file; the default one may be missing.
func (f *placeFlags) loadEnv() error {
	err := agentfile.LoadEnv(cmp.Or(f.Env, ".env"))
	if f.Env == "" && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// openAgent reads an agent file.
func openAgent(file string) (*agentfile.File, error) {
	f, err := agentfile.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; the command init writes one", err)
	}
	return f, err
}

// loadAgent returns the agent of a file. What `check` would warn about is logged.
func loadAgent(app *cli.App, file string) (schema.AgentSpec, error) {
	f, err := openAgent(file)
	if err != nil {
		return schema.AgentSpec{}, err
	}
	for _, w := range f.Warnings {
		app.Log.Warn(w.Message, "file", shownPath(file), "line", w.Line, "column", w.Column)
	}
	return f.Agent, nil
}

// employ makes the agent once its tools are there.
func (d *desk) employ(ctx context.Context, app *cli.App, model loop.Model) (err error) {
	selection := d.session.Bus.Select(d.spec.Tools...)
	if err := selection.Wait(ctx, toolsWithin); err != nil {
		return cmp.Or(context.Cause(ctx), err) // an interrupt, if it was one
	}
	d.registry = selection
	guards, err := govern(d.spec)
	if err != nil {
		return err
	}
	d.agent, err = loop.New(loop.Config{
		Agent: d.spec, Model: model, Bus: d.session.Bus, Registry: d.registry, Guards: guards, Events: d.event,
		Principal: d.acts, Instance: d.session.Bus.Instance(), Logger: app.Log,
	})
	return err
}

// event shows an event, and has somebody asked, here or elsewhere, about a call that waits for it.
func (d *desk) event(e loop.Event) {
	if d.asker != nil {
		d.asker.leave(e)
	}
	d.view.Event(e)
	d.unserved(e)
	switch {
	case d.asker != nil:
		d.asker.event(e)
	case e.Type == loop.EventApprovalRequested:
		d.view.Print("          " + d.elsewhere(fmt.Sprintf("approvals approve %s %d.%d", e.Run, e.Turn, e.Call.Index)))
	}
}

// elsewhere is the line that has this run's server do something from another terminal.
func (d *desk) elsewhere(command string) string {
	switch url := d.session.URL(); {
	case d.data != "":
		return "orchestrator " + command + " --data " + d.data
	case url != "":
		return "NATS_URL=" + url + " orchestrator " + command
	}
	return "orchestrator " + command
}

// unserved says that a task waits for an orchestrator, when none that is there serves its agent, and for how long.
func (d *desk) unserved(e loop.Event) {
	if e.Handoff == nil || e.Handoff.Status != loop.HandoffStarting || d.json {
		return
	}
	agent := e.Handoff.Subagent
	serves := func(t schema.Tool) bool { return t.Queue == schema.QueueAgents && t.Name == agent }
	if !slices.ContainsFunc(d.served, serves) && !slices.ContainsFunc(d.session.Bus.Catalog().Tools(), serves) {
		d.view.Note("unserved", "nobody serves the agent "+agent+": the task waits half a minute for an `orchestrator serve` or --also with its file")
	}
}

// attend has somebody at the terminal asked about calls. What is typed comes from lines.
func (d *desk) attend(app *cli.App, lines <-chan string) {
	d.asker = &asker{
		bus: d.session.Bus, view: d.view, out: app.Out, by: d.acts.ID, elsewhere: d.elsewhere, lines: lines, news: make(chan struct{}, 1),
	}
}

// atTerminal tells whether somebody can be asked.
func (f *agentFlags) atTerminal(app *cli.App) bool {
	return !f.JSON && view.IsTerminal(app.In) && view.IsTerminal(app.Out)
}

// close ends the view and the session.
func (d *desk) close() {
	d.view.Close()
	if d.also != nil {
		d.also.end()
	}
	if d.session != nil {
		d.session.Close()
	}
}

// start opens a run, or takes one over, and has the view follow who works on what, until stop is called.
func (d *desk) start(ctx context.Context) (run *loop.Run, stop func(), err error) {
	if d.resumed != "" {
		run, err = d.agent.Resume(ctx, d.resumed)
	} else {
		run, err = d.agent.Start(ctx, "")
	}
	if err != nil {
		return nil, nil, err
	}
	d.opened = run.ID()
	stop, err = follow(ctx, d.session.Bus, run.ID(), d.view)
	switch {
	case err == nil && d.asker != nil:
		asking, leave := context.WithCancel(ctx)
		var asker sync.WaitGroup
		asker.Go(func() { d.asker.run(asking) })
		unfollow := stop
		return run, func() { leave(); asker.Wait(); unfollow() }, nil
	case err == nil:
		return run, stop, nil
	case d.resumed == "":
		err = errors.Join(err, run.Close(context.WithoutCancel(ctx)))
	}
	return nil, nil, err
}

// verdict returns the error that an answer means for the exit code. A limit with an answer is none.
func verdict(a schema.Answer) error {
	switch a.Reason {
	case schema.ReasonDone:
		return nil
	case schema.ReasonMaxSteps, schema.ReasonWallClock, schema.ReasonTokens, schema.ReasonCost, schema.ReasonRepeat:
		if a.Text != "" {
			return nil
		}
	}
	return cli.ErrFailed
}

// behind returns app with logs that do not tear a live view, and has the view show that a signal came.
func behind(app *cli.App, v *view.View) *cli.App {
	to := v.Writer(nil)
	if to == nil {
		return app
	}
	app.SaySignals(func(text string) { v.Note("signal", text) })
	changed := *app
	changed.Log = slog.New(tracing.NewLogHandler(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelWarn})))
	return &changed
}
