package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/executor/mcp"
	"github.com/jetcrew/jetcrew/schema"
)

// mcpQueue is the tools of one MCP server as a worker serves them. They change when the server's do.
type mcpQueue struct {
	server  *mcp.Server
	app     *cli.App
	changed chan struct{} // buffered 1
	set     atomic.Pointer[executor.Set]

	mu   sync.Mutex
	past []*executor.Set // the last sets that were replaced: calls of them may run
}

// maxPast bounds the replaced sets whose handlers are still counted.
const maxPast = 16

// serveMCP connects to servers. close ends all of them.
func serveMCP(ctx context.Context, app *cli.App, servers []mcpServer) (queues []bus.Worker, end func(), err error) {
	var open []*mcp.Server
	end = func() {
		var all sync.WaitGroup
		for _, s := range open {
			all.Go(func() { _ = s.Close() }) // returns no error
		}
		all.Wait()
	}
	for _, s := range servers {
		s.Logger = app.Log
		server, err := mcp.Connect(ctx, s.Config)
		if err != nil {
			end()
			return nil, nil, err
		}
		open = append(open, server)
		q := &mcpQueue{server: server, app: app, changed: make(chan struct{}, 1)}
		if err := q.read(ctx); err != nil {
			end()
			return nil, nil, err
		}
		queues = append(queues, bus.Worker{Queue: mcp.Queue(s.Name), Slots: s.slots, Tools: q})
	}
	return queues, end, nil
}

// Tools returns the definitions of now.
func (q *mcpQueue) Tools() []schema.Tool { return q.set.Load().Tools() }

// Execute runs a call with the tools of now.
func (q *mcpQueue) Execute(ctx context.Context, call *schema.Call) (schema.Result, *schema.Pending) {
	return q.set.Load().Execute(ctx, call)
}

// Changed receives when Tools returns others.
func (q *mcpQueue) Changed() <-chan struct{} { return q.changed }

// Abandoned counts handlers that ignored the end of their calls.
func (q *mcpQueue) Abandoned() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.set.Load().Abandoned()
	for _, s := range q.past {
		n += s.Abandoned()
	}
	return n
}

// read asks the server for its tools and puts them in place of those before, if they are others.
func (q *mcpQueue) read(ctx context.Context) error {
	tools, err := q.server.Tools(ctx)
	if err != nil {
		return err
	}
	set, err := executor.Config{Queue: mcp.Queue(q.server.Name()), Logger: q.app.Log}.NewSet(tools...)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	old := q.set.Load()
	if old != nil && slices.Equal(old.Tools(), set.Tools()) {
		return nil
	}
	q.set.Store(set)
	if old == nil {
		return nil
	}
	q.past = append(q.past, old)
	q.past = q.past[max(0, len(q.past)-maxPast):]
	select {
	case q.changed <- struct{}{}:
	default:
	}
	return nil
}

// Waits between attempts to read the tools of a server that does not answer.
const (
	readAgainFirst = 250 * time.Millisecond
	readAgainMax   = 30 * time.Second
)

// follow reads the tools anew whenever the server says so, until ctx ends. While it does not answer, the tools stay.
func (q *mcpQueue) follow(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-q.server.Changed():
		}
		for wait := readAgainFirst; ; wait = min(2*wait, readAgainMax) {
			err := q.read(ctx)
			if err == nil || ctx.Err() != nil || errors.Is(err, mcp.ErrClosed) {
				break
			}
			q.app.Log.Warn("tools of an MCP server not read, its old ones stay", "error", err, "again_in", wait.String())
			again := time.NewTimer(wait)
			select {
			case <-ctx.Done():
			case <-again.C:
			}
			again.Stop()
		}
	}
}

// checkServers refuses what cannot be served, and two servers of one queue.
func checkServers(servers []mcpServer) error {
	seen := map[string]bool{}
	for _, s := range servers {
		if seen[s.Name] {
			return fmt.Errorf("MCP server %q is named twice", s.Name)
		}
		seen[s.Name] = true
		if err := s.Check(); err != nil {
			return err
		}
	}
	return nil
}
