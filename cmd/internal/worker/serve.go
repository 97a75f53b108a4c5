package worker

import (
	"context"
	"errors"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/executor/toolkit"
	"github.com/jetcrew/jetcrew/schema"
)

// Serve is the command that executes calls with real tools.
type Serve struct {
	Process
	Queue     []Queue     `placeholder:"NAME[=SLOTS]" help:"Queue to serve, which is also the name of its toolkit (files, shell), and how many calls run at once (4). May be repeated."`
	Root      string      `default:"." type:"existingdir" help:"Directory that the tools work in and do not leave."`
	MCP       []mcpServer `name:"mcp" sep:"none" placeholder:"NAME=COMMAND" help:"MCP server whose tools the queue mcp-NAME has: a command that speaks over its standard input and output, or a URL. May be repeated."`
	MCPConfig string      `name:"mcp-config" type:"existingfile" placeholder:"FILE" help:"JSON file whose mcpServers are served, each on its queue mcp-NAME."`
	Limit     []AtMost    `placeholder:"TOOL=N" help:"At most N calls of the tool at once over the whole fleet. It gets a queue of its own, QUEUE-TOOL; all workers have to name the same N. May be repeated."`
	Rate      []Pace      `placeholder:"TOOL=N/s" help:"At most N starts of the tool, a name or a glob, in a second (/s), a minute (/m) or an hour (/h) at this worker; what comes sooner is RateLimited. N/m:BURST lets BURST start at once. May be repeated."`
	Require   bool        `name:"require-authority" help:"Deny calls that state no scopes. Without it they run: whoever may publish on the work stream may leave them out."`
}

// Validate checks that there is something to serve.
func (s *Serve) Validate() error {
	if len(s.Queue) == 0 && len(s.MCP) == 0 && s.MCPConfig == "" {
		return errors.New("what is to be served? Name a queue (--queue) or an MCP server (--mcp, --mcp-config)")
	}
	return nil
}

// Run serves until ctx ends, then drains.
func (s *Serve) Run(ctx context.Context, app *cli.App) error {
	servers, err := s.servers(app)
	errs := []error{err}
	bound, err := newBounds(s.Limit, s.Rate, servers)
	bound.required = s.Require
	errs = append(errs, err)
	var queues []bus.Worker
	for _, q := range s.Queue {
		more, err := bound.serve(q, s.Root, app)
		errs, queues = append(errs, err), append(queues, more...)
	}
	if err := errors.Join(errs...); err != nil {
		return &cli.ExitError{Code: cli.CodeUsage, Err: err}
	}
	more, end, err := serveMCP(ctx, app, servers, bound)
	if err != nil {
		return err
	}
	defer end()
	queues = append(queues, more...)
	if err := bound.unmet(definitions(queues)); err != nil {
		return cli.Usagef("%w", err)
	}
	return s.work(ctx, app, queues)
}

// servers returns the MCP servers of the command line and of the file.
func (s *Serve) servers(app *cli.App) (servers []mcpServer, err error) {
	if s.MCPConfig != "" {
		if servers, err = loadMCP(s.MCPConfig, app); err != nil {
			return nil, err
		}
	}
	servers = append(servers, s.MCP...)
	return servers, checkServers(servers)
}

// serve returns the tools of a toolkit as this process serves them: those that are limited on queues of their own.
func (b *bounds) serve(q Queue, root string, app *cli.App) (queues []bus.Worker, err error) {
	tools, err := toolkit.Named(q.Name, root)
	if err != nil {
		return nil, err
	}
	for _, s := range b.split(q.Name, q.Slots, tools) {
		if len(s.tools) == 0 {
			continue
		}
		set, err := b.set(s, app)
		if err != nil {
			return nil, err
		}
		queues = append(queues, bus.Worker{Queue: s.queue, Slots: s.slots, Limit: s.limit, Tools: set})
	}
	return queues, nil
}

// set makes the tools of a queue keep to the paces.
func (b *bounds) set(s share, app *cli.App) (*executor.Set, error) {
	set, err := executor.Config{Queue: s.queue, RequireAuthority: b.required, Logger: app.Log}.NewSet(s.tools...)
	if err != nil {
		return nil, err
	}
	return set.With(b.wrappers...), nil
}

func definitions(queues []bus.Worker) (tools []schema.Tool) {
	for _, w := range queues {
		tools = append(tools, w.Tools.Tools()...)
	}
	return tools
}
