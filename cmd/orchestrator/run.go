package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
)

// maxTask bounds a task that is read from standard input, in bytes.
const maxTask = 1 << 20

// RunCmd is the command run.
type RunCmd struct {
	Task []string `arg:"" optional:"" help:"The task; absent or -: standard input. With --resume: a further message, absent: none."`
	detachFlags
	agentFlags
}

// Run has the task done. The exit code is 1 when the exchange ended without an answer of the model.
func (c *RunCmd) Run(ctx context.Context, app *cli.App) error {
	if err := c.checkDetach(); err != nil {
		return err
	}
	task, err := c.task(app.In)
	if err != nil {
		return err
	}
	if c.Detach {
		return c.detach(ctx, app, task)
	}
	d, err := c.open(ctx, app)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	defer d.close()
	if c.atTerminal(app) && (len(c.Task) > 0 || c.Resume != "") { // else what is typed is the task
		d.attend(app, readLines(app.In))
	}
	answer, err := d.do(ctx, task)
	d.view.Close()
	if err != nil {
		c.sayParked(app, d, err)
		if errors.Is(err, loop.ErrParked) && ctx.Err() != nil {
			err = ctx.Err() // that it was interrupted is all there is to say
		}
		return fmt.Errorf("run: %w", err)
	}
	if d.idle && !c.JSON {
		fmt.Fprintln(app.Out, view.Clean(answer.Text)) // no event has said it
	}
	if c.Quiet && answer.Reason != schema.ReasonDone {
		fmt.Fprintf(app.Err, "%s: run: ended: %s %s\n", app.Program, answer.Reason, view.Clean(answer.Error))
	}
	return verdict(answer)
}

// sayParked says how to go on with a run that was left while it waits for an approval.
func (f *agentFlags) sayParked(app *cli.App, d *desk, err error) {
	switch {
	case !errors.Is(err, loop.ErrParked):
	case f.URL == "" && f.Data == "":
		fmt.Fprintf(app.Err, "%s: the run is gone with the temporary server; --data DIR would have kept it\n", app.Program)
	default:
		if d.also != nil {
			d.also.end() // or it would take the run
		}
		if werr := d.session.Bus.Wake(d.opened); werr != nil { // an orchestrator that serves may go on with it
			app.Log.Warn("run not handed over", "error", werr)
		}
		fmt.Fprintf(app.Err, "%s: the run waits; see what for by `orchestrator approvals list%s`, go on by `orchestrator run --resume %s%s`\n",
			app.Program, f.place(), d.opened, f.place()+f.files())
	}
}

// place is the flag that names the directory of an embedded server, for a command that somebody copies.
func (f *agentFlags) place() string {
	if f.URL != "" {
		return ""
	}
	return " --data " + f.Data
}

// files are the flags that name the agent files of this command. A resumed run needs its own for the transcript of a
// replay model only, and the others for its sub-agents.
func (f *agentFlags) files() string {
	flags := ""
	if usual, err := filepath.Abs("agent.yaml"); err != nil || f.File != usual {
		flags = " -f " + f.File
	}
	for _, file := range f.Also {
		flags += " --also " + file
	}
	return flags
}

func (c *RunCmd) task(in io.Reader) (string, error) {
	text := strings.Join(c.Task, " ")
	if text == "" && c.Resume != "" {
		return "", nil
	}
	if text == "" && view.IsTerminal(in) {
		return "", cli.Usagef("run: what is the task? such as: run \"What does this project do?\"")
	}
	if text == "" || text == "-" {
		data, err := io.ReadAll(io.LimitReader(in, maxTask))
		if err != nil {
			return "", fmt.Errorf("run: read the task: %w", err)
		}
		text = string(data)
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", cli.Usagef("run: the task is empty")
	}
	return text, nil
}

// do runs one task in a run of its own, or to its end what is left of another, and records and closes it.
func (d *desk) do(ctx context.Context, task string) (schema.Answer, error) {
	run, stop, err := d.start(ctx)
	if err != nil {
		return schema.Answer{}, err
	}
	defer stop()
	answer, err := d.finish(ctx, run, task == "")
	if err == nil && task != "" {
		answer, err = run.Say(ctx, task)
	}
	for err == nil {
		// A message that came from elsewhere in the meantime is answered too.
		if err = run.Close(context.WithoutCancel(ctx)); !errors.Is(err, loop.ErrUnanswered) {
			break
		}
		answer, err = run.Work(ctx)
	}
	return answer, errors.Join(err, d.record.write(ctx, d.spec.ID, run, d.registry))
}
