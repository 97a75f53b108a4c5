package worker

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/schema"
)

// Limit is the command that shows or changes the limit of a queue.
type Limit struct {
	cli.Connection
	Queue  string `arg:"" help:"The queue; that of a tool with a limit is QUEUE-TOOL."`
	AtOnce AtOnce `arg:"" optional:"" name:"n" help:"Calls at once over all workers, or none for no limit; absent: show it."`
}

// AtOnce is a number of calls, or none.
type AtOnce struct {
	given bool
	n     int
}

// UnmarshalText reads a number or none.
func (a *AtOnce) UnmarshalText(text []byte) error {
	a.given = true
	if string(text) == "none" {
		return nil
	}
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 || n > maxLimit {
		return fmt.Errorf("%.40q: want 1 to %d, or none", text, maxLimit)
	}
	a.n = n
	return nil
}

// Validate checks what kong cannot.
func (l *Limit) Validate() error { return schema.CheckQueue(l.Queue) }

// Run says what the limit is, and what it was.
func (l *Limit) Run(ctx context.Context, app *cli.App) error {
	b, err := connect(ctx, l.Config(app))
	if err != nil {
		return fmt.Errorf("limit: %w", err)
	}
	defer b.Close()
	was, known, err := b.LimitOf(ctx, l.Queue)
	switch {
	case err != nil:
		return err
	case !known && !l.AtOnce.given:
		return fmt.Errorf("limit: nobody has served the queue %s yet", l.Queue)
	case l.AtOnce.given:
		if err := b.Limit(ctx, l.Queue, l.AtOnce.n); err != nil {
			return err
		}
		fmt.Fprintf(app.Out, "queue %s: %s, before %s\n", l.Queue, atOnce(l.AtOnce.n), atOnce(was))
	default:
		fmt.Fprintf(app.Out, "queue %s: %s\n", l.Queue, atOnce(was))
	}
	return nil
}

func atOnce(n int) string {
	if n == 0 {
		return "no limit"
	}
	return fmt.Sprintf("%d at once over all workers", n)
}
