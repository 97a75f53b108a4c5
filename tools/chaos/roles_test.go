package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
)

// The test starts its own binary again for each worker and orchestrator of the fleet, with a role and an argument in the environment.
const (
	envRole     = "CHAOS_ROLE"
	envURL      = "CHAOS_URL"      // of the servers
	envReplicas = "CHAOS_REPLICAS" // of the streams
	envLedger   = "CHAOS_LEDGER"   // of the workers
	envLeaks    = "CHAOS_LEAKS"    // file of who ends with goroutines left
	agent       = "chaos"
	queue       = "mixed"
)

func TestMain(m *testing.M) {
	role := os.Getenv(envRole)
	if role == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	err := play(ctx, role)
	stop()
	if err = errors.Join(err, noteLeaks(role)); err != nil {
		slog.Error("role ended", "role", role, "error", err)
		os.Exit(1)
	}
}

// noteLeaks writes down which goroutines are left in a process that ends. The deaf tool of a worker sleeps on.
func noteLeaks(role string) error {
	var deaf []goleak.Option
	if role == "worker" {
		deaf = append(deaf, goleak.IgnoreTopFunction("time.Sleep"))
	}
	leaks := goleak.Find(deaf...)
	if leaks == nil {
		return nil
	}
	file, err := os.OpenFile(os.Getenv(envLeaks), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s: %v\n", role, leaks)
	return errors.Join(err, file.Close())
}

func play(ctx context.Context, role string) error {
	switch role {
	case "worker":
		return playWorker(ctx)
	case "orchestrator":
		return playOrchestrator(ctx)
	}
	return fmt.Errorf("role %q is unknown", role)
}

// connect tries until a server answers: they may be away just now.
func connect(ctx context.Context, cfg bus.Config) (*bus.Bus, error) {
	for {
		b, err := connectOnce(ctx, cfg)
		if err == nil || ctx.Err() != nil {
			return b, err
		}
		slog.Info("not connected yet", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// connectOnce gives up soon: another server may answer.
func connectOnce(ctx context.Context, cfg bus.Config) (*bus.Bus, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return bus.Connect(ctx, cfg)
}

// settings are those that the fleet gave this process.
func settings() bus.Config {
	replicas, _ := strconv.Atoi(os.Getenv(envReplicas)) // else the default
	return bus.Config{URL: os.Getenv(envURL), Replicas: replicas}
}

type args struct {
	ID string `json:"id"`
	MS int    `json:"ms"`
}

func (a args) pause() time.Duration { return time.Duration(a.MS) * time.Millisecond }

// ledger notes that a call starts, in one write to the end of a file that all workers share.
type ledger struct{ file io.Writer }

func (l ledger) note(ctx context.Context, tool string, a args) error {
	_, err := fmt.Fprintf(l.file, "%s %s %d\n", a.ID, tool, schema.Delivery(ctx))
	return err
}

func playWorker(ctx context.Context) error {
	file, err := os.OpenFile(os.Getenv(envLedger), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	set, err := tools(ledger{file})
	if err != nil {
		return err
	}
	b, err := connect(ctx, settings())
	if err != nil {
		return err
	}
	defer b.Close()
	return b.Serve(ctx, bus.Worker{Queue: queue, Slots: 8, Tools: set, Drain: 2 * time.Second})
}

func tools(l ledger) (*executor.Set, error) {
	tool := func(name string, run func(context.Context, args) (string, error), opts ...executor.Option) executor.Tool {
		noted := func(ctx context.Context, a args) (string, error) {
			if err := l.note(ctx, name, a); err != nil {
				return "", err
			}
			return run(ctx, a)
		}
		return executor.Func(name, "A tool of the chaos test.", noted, opts...)
	}
	return executor.NewSet(queue,
		tool(toolFast, func(_ context.Context, a args) (string, error) { return a.ID, nil }, executor.Idempotent()),
		tool(toolSlow, func(ctx context.Context, a args) (string, error) { return a.ID, wait(ctx, a.pause()) }, executor.Idempotent()),
		tool(toolOnce, func(ctx context.Context, a args) (string, error) { return a.ID, wait(ctx, a.pause()/4) }),
		tool(toolLarge, func(_ context.Context, a args) (string, error) { return a.ID + strings.Repeat(" large", 60<<10), nil }, executor.Idempotent()),
		tool(toolDeaf, func(_ context.Context, a args) (string, error) {
			time.Sleep(a.pause() * 4)
			return a.ID, nil
		}, executor.Idempotent(), executor.Timeout(500*time.Millisecond)),
		tool(toolCrash, func(_ context.Context, a args) (string, error) {
			if rand.IntN(3) == 0 {
				os.Exit(3)
			}
			return a.ID, nil
		}, executor.Idempotent()),
	)
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func playOrchestrator(ctx context.Context) error {
	b, err := connect(ctx, settings())
	if err != nil {
		return err
	}
	defer b.Close()
	registry := b.Select("*", schema.QueueAgents+"/"+toolChild)
	h, err := loop.NewHost(loop.HostConfig{
		Config: loop.Config{Bus: b, Logger: slog.Default(), Principal: schema.Principal{ID: "local", Scopes: []string{"tool:*", "tool:agents/*"}}},
		Find: func(name string) (schema.AgentSpec, bool) {
			return spec(name), name == agent || name == toolChild
		},
		Equip: func(ctx context.Context, _ schema.AgentSpec) (loop.Model, loop.Registry, error) {
			return script{}, registry, registry.Wait(ctx, 10*time.Second)
		},
	})
	if err != nil {
		return err
	}
	return b.Host(ctx, bus.Hosting{Slots: 64, Host: h, Drain: 2 * time.Second, Agents: []schema.Tool{schema.AgentTool(spec(toolChild))}})
}

func spec(name string) schema.AgentSpec {
	return schema.AgentSpec{ID: name, Parallel: schema.Parallel{Calls: true}}
}
