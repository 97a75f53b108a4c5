package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

const hostileQueue = "hostile"

// hostile is the command of a worker with tools that do what tools should not do. Each writes down that it starts.
type hostile struct {
	Process
	Slots int    `default:"4"`
	Dir   string `help:"Where the ledger is, and the files that calls wait for."`
}

// Run serves them.
func (h *hostile) Run(ctx context.Context, app *cli.App) error {
	idempotent := executor.Idempotent()
	set, err := executor.Config{Queue: hostileQueue, Logger: app.Log}.NewSet(
		h.tool("ok", done, idempotent),
		h.tool("nap", nap, idempotent),
		h.tool("nap_once", nap),
		h.tool("spin", spin, idempotent),
		h.tool("gate", h.gate, idempotent),
		h.tool("gate_once", h.gate),
		h.tool("deaf", h.deaf, idempotent, executor.Timeout(time.Minute)),
		h.tool("deaf_once", h.deaf),
		h.tool("nil_map", nilMap, idempotent),
		h.tool("nil_map_once", nilMap),
		h.tool("overflow", func(context.Context, order) (string, error) { return fmt.Sprint(recurse(1)), nil }, idempotent),
		h.tool("fails", func(context.Context, order) (string, error) {
			return "", executor.Transient(errNotNow, time.Millisecond)
		}),
	)
	if err != nil {
		return err
	}
	return h.work(ctx, app, []bus.Worker{{Queue: hostileQueue, Slots: h.Slots, Tools: set}})
}

// order is the arguments of every tool here.
type order struct {
	ID string `json:"id"`
	MS int    `json:"ms,omitempty"`
}

func (o order) length() time.Duration { return time.Duration(o.MS) * time.Millisecond }

func (h *hostile) tool(name string, run func(context.Context, order) (string, error), opts ...executor.Option) executor.Tool {
	noted := func(ctx context.Context, o order) (string, error) {
		if err := h.note(ctx, o.ID); err != nil {
			return "", err
		}
		return run(ctx, o)
	}
	return executor.Func(name, "A tool of a test.", noted, opts...)
}

// note writes a line with the call's key and delivery into the ledger, in one write that no crash halves.
func (h *hostile) note(ctx context.Context, id string) error {
	f, err := os.OpenFile(filepath.Join(h.Dir, ledgerName), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %s %d\n", id, executor.Key(ctx), schema.Delivery(ctx))
	return errors.Join(err, f.Close())
}

const ledgerName = "ledger"

func done(_ context.Context, o order) (string, error) { return o.ID, nil }

func nap(ctx context.Context, o order) (string, error) { return o.ID, pause(ctx, o.length()) }

// spin keeps a processor busy and looks at nothing.
func spin(_ context.Context, o order) (string, error) {
	for end := time.Now().Add(o.length()); time.Now().Before(end); {
		for range 1 << 20 {
		}
	}
	return o.ID, nil
}

// gate waits for a file, and writes down that it returns.
func (h *hostile) gate(ctx context.Context, o order) (string, error) {
	for {
		if _, err := os.Stat(filepath.Join(h.Dir, "go."+o.ID)); err == nil {
			return o.ID, h.note(ctx, "returned."+o.ID)
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return "", err
		}
	}
}

// deaf waits as gate does, and does not hear that its call has ended.
func (h *hostile) deaf(ctx context.Context, o order) (string, error) {
	return h.gate(context.WithoutCancel(ctx), o)
}

// nilMap panics where no guard can stand: the process dies.
func nilMap(ctx context.Context, _ order) (string, error) {
	go func() { headers(nil)["x"] = 1 }()
	<-ctx.Done()
	return "", ctx.Err()
}

func headers(m map[string]int) map[string]int { return m }

// recurse overflows the stack long before it ends.
func recurse(n int) int {
	if n < 0 {
		return n
	}
	return n + recurse(n+1)
}

var errNotNow = errors.New("not now")
