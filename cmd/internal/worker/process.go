package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
)

const connectWithin = 20 * time.Second

// Process holds the flags of every worker process.
type Process struct {
	cli.Connection
	Attempts int           `default:"3" help:"Starts of one call before it is given up."`
	Drain    time.Duration `default:"20s" help:"After a signal, how long running calls may take before they are cancelled."`
	Parent   bool          `hidden:"" help:"Read the server's URL from standard input, and end when that ends."`
}

// work serves the queues, each with its tools, until ctx ends and everything has drained. Who is told to end before it
// has taken a call leaves nothing, which is no error.
func (p *Process) work(ctx context.Context, app *cli.App, queues []bus.Worker) error {
	err := p.workUntil(ctx, app, queues)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (p *Process) workUntil(ctx context.Context, app *cli.App, queues []bus.Worker) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cli.IgnoreBrokenPipe()
	var alive *parent
	if p.Parent {
		var err error
		if alive, err = followParent(app.In); err != nil {
			return err
		}
		p.URL = alive.url
	}
	b, err := connect(ctx, p.Config(app))
	if err != nil {
		return err
	}
	defer b.Close()
	if alive != nil {
		go alive.watch(cancel, b)
	} else {
		announce(app, queues)
		app.SaySignals(func(string) {
			fmt.Fprintf(app.Err, "\ntaking no more calls; what runs may finish within %v, and once more ends at once\n", p.Drain)
		})
	}
	return p.serve(ctx, b, queues)
}

func connect(ctx context.Context, cfg bus.Config) (*bus.Bus, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("%w; is a NATS server with JetStream running there? --nats or NATS_URL names it", err)
	}
	return b, nil
}

// serve ends all queues when one of them cannot go on. The error says what was left.
func (p *Process) serve(ctx context.Context, b *bus.Bus, queues []bus.Worker) error {
	all := pool.New().WithErrors().WithContext(ctx).WithCancelOnError()
	for _, w := range queues {
		w.Attempts, w.Drain = p.Attempts, p.Drain
		all.Go(func(ctx context.Context) error {
			if p.Parent && w.Limit > 0 { // all workers of an embedded server are told the same, and it may remember another
				if err := b.Limit(ctx, w.Queue, w.Limit); err != nil {
					return err
				}
			}
			return b.Serve(ctx, w)
		})
		if set, ok := w.Tools.(loser); ok {
			all.Go(func(ctx context.Context) error { return watchAbandoned(ctx, w.Queue, set, w.Slots) })
		}
		if q, ok := w.Tools.(*mcpQueue); ok && q.source.queues[0] == q {
			all.Go(q.source.follow)
		}
	}
	if err := all.Wait(); err != nil {
		return err
	}
	return left(queues)
}

// left says which handlers outlive their calls, whose results are recorded: the end of the process cuts them off.
func left(queues []bus.Worker) (err error) {
	for _, w := range queues {
		if set, ok := w.Tools.(loser); ok && set.Abandoned() > 0 {
			err = errors.Join(err, fmt.Errorf("queue %s: handlers that ignored the end of their calls are cut off: %d", w.Queue, set.Abandoned()))
		}
	}
	return err
}

// errLostSlots ends a worker whose handlers ignore the end of their calls: each holds on to what it has, so a fresh
// process is the way back.
var errLostSlots = errors.New("as many handlers as there are slots ignored the end of their calls; start this worker anew")

const lookForAbandoned = 2 * time.Second

// loser is tools that give up handlers which ignore the end of their calls; it counts them.
type loser interface{ Abandoned() int64 }

func watchAbandoned(ctx context.Context, queue string, set loser, slots int) error {
	tick := time.NewTicker(lookForAbandoned)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if set.Abandoned() >= int64(slots) {
				return fmt.Errorf("queue %s: %w", queue, errLostSlots)
			}
		}
	}
}

// announce tells people what is served.
func announce(app *cli.App, queues []bus.Worker) {
	for _, w := range queues {
		var names []string
		for _, t := range w.Tools.Tools() {
			names = append(names, t.Name)
		}
		limit := ""
		if w.Limit > 0 {
			limit = fmt.Sprintf(", %d at once over all workers", w.Limit)
		}
		fmt.Fprintf(app.Out, "queue %s, %d slots%s: %s\n", w.Queue, w.Slots, limit, cmp.Or(cli.Printable(strings.Join(names, ", ")), "no tools yet"))
	}
}
