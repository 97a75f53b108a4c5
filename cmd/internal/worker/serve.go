package worker

import (
	"context"
	"errors"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/executor/toolkit"
)

// Serve is the command that executes calls with real tools.
type Serve struct {
	Process
	Queue     []Queue     `placeholder:"NAME[=SLOTS]" help:"Queue to serve, which is also the name of its toolkit (files, shell), and how many calls run at once (4). May be repeated."`
	Root      string      `default:"." type:"existingdir" help:"Directory that the tools work in and do not leave."`
	MCP       []mcpServer `name:"mcp" sep:"none" placeholder:"NAME=COMMAND" help:"MCP server whose tools the queue mcp-NAME has: a command that speaks over its standard input and output, or a URL. May be repeated."`
	MCPConfig string      `name:"mcp-config" type:"existingfile" placeholder:"FILE" help:"JSON file whose mcpServers are served, each on its queue mcp-NAME."`
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
	var queues []bus.Worker
	var errs []error
	for _, q := range s.Queue {
		set, err := toolSet(q.Name, s.Root, app)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		queues = append(queues, bus.Worker{Queue: q.Name, Slots: q.Slots, Tools: set})
	}
	servers, err := s.servers(app)
	if err := errors.Join(append(errs, err)...); err != nil {
		return &cli.ExitError{Code: cli.CodeUsage, Err: err}
	}
	more, end, err := serveMCP(ctx, app, servers)
	if err != nil {
		return err
	}
	defer end()
	return s.work(ctx, app, append(queues, more...))
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

func toolSet(queue, root string, app *cli.App) (*executor.Set, error) {
	tools, err := toolkit.Named(queue, root)
	if err != nil {
		return nil, err
	}
	return executor.Config{Queue: queue, Logger: app.Log}.NewSet(tools...)
}
