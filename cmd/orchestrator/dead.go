package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/session"
	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/schema"
)

// DeadCmd is the command dead.
type DeadCmd struct {
	List  DeadListCmd  `cmd:"" help:"List dead letters, newest first."`
	Show  DeadShowCmd  `cmd:"" help:"Show one dead letter with the arguments of its call."`
	Retry DeadRetryCmd `cmd:"" help:"Make the call again, as a new call on a run of its own. The old result stays, and so does the letter."`
	Drop  DeadDropCmd  `cmd:"" help:"Remove a dead letter."`
}

// maxShownArgs bounds the arguments that are shown, in bytes.
const maxShownArgs = 4 << 10

// shownLetter is a dead letter for programs.
type shownLetter struct {
	ID         uint64 `json:"id"`
	Queue      string `json:"queue"`
	Tool       string `json:"tool,omitempty"`
	Call       string `json:"call,omitempty"` // run/turn.index
	Reason     string `json:"reason"`
	AtMS       int64  `json:"at_ms"`
	Worker     string `json:"worker"`
	Deliveries uint64 `json:"deliveries"`
	Size       int64  `json:"size"` // bytes of the whole message
	Args       string `json:"args,omitempty"`
}

func showLetter(l *bus.BuriedCall) shownLetter {
	s := shownLetter{
		ID: l.ID, Queue: l.Queue, Reason: l.Reason, AtMS: l.At.UnixMilli(), Worker: l.Worker, Deliveries: l.Delivery,
		Size: max(l.Size, int64(len(l.Data))),
	}
	if l.Call != nil {
		s.Tool, s.Call, s.Args = l.Call.Tool, l.Call.String(), schema.Cut(string(l.Call.Args), maxShownArgs)
	}
	return s
}

// DeadListCmd is the command dead list.
type DeadListCmd struct {
	recordFlags
	JSON  bool `name:"json" help:"One JSON object per letter."`
	Limit int  `default:"20" help:"At most so many; 0: all."`
}

// Run prints the letters.
func (c *DeadListCmd) Run(ctx context.Context, app *cli.App) error {
	s, err := c.open(ctx, app)
	if err != nil {
		return fmt.Errorf("dead list: %w", err)
	}
	defer s.Close()
	out := view.New(view.Config{Out: app.Out, Format: view.JSON})
	rows := [][]string{{"ID", "QUEUE", "TOOL", "CALL", "WHEN", "WORKER", "DELIVERIES", "WHY"}}
	n := 0
	for letter, err := range s.Bus.DeadLetters(ctx) {
		if err != nil {
			return fmt.Errorf("dead list: %w", err)
		}
		l := showLetter(&letter)
		if c.JSON {
			out.Put(l)
		} else {
			rows = append(rows, l.row())
		}
		if n++; n == c.Limit {
			break
		}
	}
	if !c.JSON {
		printRows(app, rows)
	}
	return nil
}

func (l *shownLetter) row() []string {
	return []string{
		strconv.FormatUint(l.ID, 10), word(l.Queue), dash(word(l.Tool)), dash(word(l.Call)), time.UnixMilli(l.AtMS).Format(time.DateTime),
		dash(view.ShortID(word(l.Worker))), strconv.FormatUint(l.Deliveries, 10), firstSentence(word(l.Reason)),
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// letterFlags name a dead letter.
type letterFlags struct {
	recordFlags
	ID uint64 `arg:"" help:"Number of the dead letter, as the command dead list shows it."`
}

// read returns the letter.
func (f *letterFlags) read(ctx context.Context, s *session.Session) (bus.BuriedCall, error) {
	l, err := s.Bus.DeadLetter(ctx, f.ID)
	return l, whichLetters(err)
}

// whichLetters says where the numbers of the letters are found.
func whichLetters(err error) error {
	if errors.Is(err, bus.ErrNoLetter) {
		return fmt.Errorf("%w; `orchestrator dead list` shows those that are there", err)
	}
	return err
}

// DeadShowCmd is the command dead show.
type DeadShowCmd struct {
	letterFlags
	JSON bool `name:"json" help:"Print it as JSON."`
}

// Run prints the letter.
func (c *DeadShowCmd) Run(ctx context.Context, app *cli.App) error {
	s, err := c.open(ctx, app)
	if err != nil {
		return fmt.Errorf("dead show: %w", err)
	}
	defer s.Close()
	letter, err := c.read(ctx, s)
	if err != nil {
		return fmt.Errorf("dead show: %w", err)
	}
	l := showLetter(&letter)
	if c.JSON {
		view.New(view.Config{Out: app.Out, Format: view.JSON}).Put(l)
		return nil
	}
	for _, line := range [][2]string{
		{"queue", l.Queue},
		{"tool", l.Tool},
		{"call", l.Call},
		{"why", l.Reason},
		{"when", time.UnixMilli(l.AtMS).Format(time.DateTime)},
		{"worker", l.Worker},
		{"deliveries", strconv.FormatUint(l.Deliveries, 10)},
		{"size", strconv.FormatInt(l.Size, 10) + " bytes"},
		{"arguments", l.Args},
	} {
		fmt.Fprintf(app.Out, "%-11s %s\n", line[0], dash(word(line[1])))
	}
	return nil
}

// DeadRetryCmd is the command dead retry.
type DeadRetryCmd struct {
	letterFlags
	Root    string        `default:"." type:"existingdir" help:"Directory of the file and shell tools of an embedded server."`
	Timeout time.Duration `help:"Bound on waiting plus running; default the tool's own, or 5 minutes."`
}

// Run makes the call. Its failure is the command's.
func (c *DeadRetryCmd) Run(ctx context.Context, app *cli.App) error {
	s, err := c.open(ctx, app, cli.ToolFleet(c.Root, 1))
	if err != nil {
		return fmt.Errorf("dead retry: %w", err)
	}
	defer s.Close()
	s.Bus.Catalog() // so that a call nobody can take says so
	letter, err := c.read(ctx, s)
	if err != nil {
		return fmt.Errorf("dead retry: %w", err)
	}
	r, err := s.Bus.Retry(ctx, letter, c.Timeout)
	if err != nil {
		return fmt.Errorf("dead: %w", err)
	}
	text := strings.TrimSuffix(view.Clean(r.Output), "\n")
	if !r.OK {
		fmt.Fprintf(app.Err, "new call %s/1.0 failed:\n%s\n", r.Run, text)
		return cli.ErrFailed
	}
	fmt.Fprintf(app.Out, "new call %s/1.0 succeeded; the letter stays until it is dropped. Output:\n%s\n", r.Run, text)
	return nil
}

// DeadDropCmd is the command dead drop.
type DeadDropCmd struct{ letterFlags }

// Run removes the letter.
func (c *DeadDropCmd) Run(ctx context.Context, app *cli.App) error {
	s, err := c.open(ctx, app)
	if err != nil {
		return fmt.Errorf("dead drop: %w", err)
	}
	defer s.Close()
	if err := s.Bus.DropDeadLetter(ctx, c.ID); err != nil {
		return fmt.Errorf("dead: %w", whichLetters(err))
	}
	fmt.Fprintf(app.Out, "dead letter %d dropped\n", c.ID)
	return nil
}
