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

// mcpQueue is tools of one MCP server as a worker serves them: all that are not limited, or a limited one. They change when the
// server's do.
type mcpQueue struct {
	source  *mcpSource
	name    string        // of the queue
	tool    string        // the limited one; empty: all that are not
	changed chan struct{} // buffered 1
	set     atomic.Pointer[executor.Set]

	mu   sync.Mutex
	past []*executor.Set // the last sets that were replaced: calls of them may run
}

// mcpSource is a server that fills queues.
type mcpSource struct {
	server *mcp.Server
	app    *cli.App
	slots  int
	bounds *bounds
	queues []*mcpQueue // of which the first is there always and follows the server's changes
}

// maxPast bounds the replaced sets whose handlers are still counted.
const maxPast = 16

// serveMCP connects to servers. close ends all of them.
func serveMCP(ctx context.Context, app *cli.App, servers []mcpServer, b *bounds) (queues []bus.Worker, end func(), err error) {
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
		source := &mcpSource{server: server, app: app, slots: s.slots, bounds: b}
		more, err := source.serve(ctx)
		if err != nil {
			end()
			return nil, nil, err
		}
		queues = append(queues, more...)
	}
	return queues, end, nil
}

// serve makes the queues of the server: one for all that is not limited, and one for each tool that is.
func (s *mcpSource) serve(ctx context.Context) (queues []bus.Worker, err error) {
	tools, err := s.server.Tools(ctx)
	if err != nil {
		return nil, err
	}
	for i, part := range s.split(tools) {
		q := &mcpQueue{source: s, name: part.queue, changed: make(chan struct{}, 1)}
		if i > 0 {
			q.tool = part.tools[0].Name
		}
		if err := q.take(part.tools); err != nil {
			return nil, err
		}
		s.queues = append(s.queues, q)
		queues = append(queues, bus.Worker{Queue: part.queue, Slots: part.slots, Limit: part.limit, Tools: q})
	}
	return queues, nil
}

func (s *mcpSource) split(tools []executor.Tool) []share {
	return s.bounds.split(mcp.Queue(s.server.Name()), s.slots, tools)
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

// read asks the server for its tools and gives each queue its own. A limited tool that was not there at the start has no
// queue, and is not served.
func (s *mcpSource) read(ctx context.Context) error {
	tools, err := s.server.Tools(ctx)
	if err != nil {
		return err
	}
	parts := s.split(tools)
	for _, q := range s.queues {
		var mine []executor.Tool
		for i, p := range parts {
			if i == 0 && q.tool == "" || i > 0 && p.tools[0].Name == q.tool {
				mine = p.tools
			}
		}
		if err := q.take(mine); err != nil {
			return err
		}
	}
	return nil
}

// take puts tools in place of those before, if they are others.
func (q *mcpQueue) take(tools []executor.Tool) error {
	set, err := q.source.bounds.set(share{queue: q.name, tools: tools}, q.source.app)
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
func (s *mcpSource) follow(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.server.Changed():
		}
		for wait := readAgainFirst; ; wait = min(2*wait, readAgainMax) {
			err := s.read(ctx)
			if err == nil || ctx.Err() != nil || errors.Is(err, mcp.ErrClosed) {
				break
			}
			s.app.Log.Warn("tools of an MCP server not read, its old ones stay", "error", err, "again_in", wait.String())
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
