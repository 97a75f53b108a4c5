package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
)

// ChatCmd is the command chat.
type ChatCmd struct{ agentFlags }

// Run reads messages line by line and prints the answers until the input ends. One run holds the whole conversation.
func (c *ChatCmd) Run(ctx context.Context, app *cli.App) error {
	d, err := c.open(ctx, app)
	if err != nil {
		return fmt.Errorf("chat: %w", err)
	}
	defer d.close()
	d.view.Close() // live only while the agent works: the rest of the time the terminal is the user's
	t := &talk{desk: d, out: app.Out, lines: readLines(app.In), prompt: view.IsTerminal(app.In) && view.IsTerminal(app.Out)}
	if c.atTerminal(app) {
		d.attend(app, t.lines)
	}
	if err := t.run(ctx); err != nil {
		c.sayParked(app, d, err)
		return fmt.Errorf("chat: %w", err)
	}
	return verdict(t.last)
}

// talk is a conversation.
type talk struct {
	*desk
	out    io.Writer
	lines  <-chan string
	prompt bool
	last   schema.Answer
}

func (t *talk) run(ctx context.Context) error {
	run, stop, err := t.start(ctx)
	if err != nil {
		return err
	}
	defer stop()
	if t.prompt {
		fmt.Fprintln(t.out, "Talk with "+view.Clean(t.spec.ID)+". An empty line does nothing; Ctrl-D ends.")
	}
	t.last.Reason = schema.ReasonDone
	if err = t.goOn(ctx, run); err == nil {
		err = t.converse(ctx, run)
	}
	t.view.Close()
	for cerr := run.Close(context.WithoutCancel(ctx)); cerr != nil; cerr = run.Close(context.WithoutCancel(ctx)) {
		if !errors.Is(cerr, loop.ErrUnanswered) { // what came last moment stays unanswered
			err = errors.Join(err, cerr)
			break
		}
	}
	return errors.Join(err, t.record.write(ctx, t.spec.ID, run, t.registry))
}

// goOn ends what an earlier process left of the conversation.
func (t *talk) goOn(ctx context.Context, run *loop.Run) error {
	if !run.Unfinished() {
		return nil
	}
	t.view.Resume()
	defer t.view.Close()
	_, err := t.finish(ctx, run, false)
	return err
}

// converse answers one line after the other.
func (t *talk) converse(ctx context.Context, run *loop.Run) error {
	for {
		line, err := t.next(ctx)
		if err != nil || line == "" {
			return err
		}
		t.view.Resume()
		t.last, err = run.Say(ctx, line)
		t.view.Close()
		if err != nil {
			return err
		}
	}
}

// next returns the user's next message, "" when there is none any more.
func (t *talk) next(ctx context.Context) (string, error) {
	for {
		if t.prompt {
			fmt.Fprint(t.out, t.view.Style().Bold("> "))
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case line, ok := <-t.lines:
			if !ok {
				if t.prompt {
					fmt.Fprintln(t.out)
				}
				return "", nil
			}
			if line = strings.TrimSpace(line); line != "" {
				return line, nil
			}
		}
	}
}

// readLines reads in to its end. A read that waits for the terminal cannot be ended, so it is left to the end of the
// process.
func readLines(in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		r := bufio.NewReader(in)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}
