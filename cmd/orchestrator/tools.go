package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/session"
	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/schema"
)

// ToolsCmd is the command tools.
type ToolsCmd struct {
	List ToolsListCmd `cmd:"" help:"List the tools that live workers offer."`
	Call ToolsCallCmd `cmd:"" help:"Call a tool and print its output."`
}

// fleetFlags open a session on whose workers tools are looked for.
type fleetFlags struct {
	cli.Local
	Root string        `default:"." type:"existingdir" help:"Directory of the file and shell tools of an embedded server."`
	Wait time.Duration `default:"5s" help:"How long to wait for workers."`
}

func (f *fleetFlags) open(ctx context.Context, app *cli.App) (*session.Session, error) {
	return f.Open(ctx, app, cli.ToolFleet(f.Root, 1))
}

// ToolsListCmd is the command tools list.
type ToolsListCmd struct {
	fleetFlags
	JSON bool `name:"json" help:"One JSON object per tool, with its parameters and workers."`
}

// listedTool is a tool and who offers it.
type listedTool struct {
	schema.Tool
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Workers    int             `json:"workers"`
	Slots      int             `json:"slots"`
	Limit      int             `json:"limit,omitempty"` // calls of its queue at once over all workers
}

// Run prints the tools.
func (c *ToolsListCmd) Run(ctx context.Context, app *cli.App) error {
	s, err := c.open(ctx, app)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := complete(ctx, s.Bus.Catalog(), c.Wait); err != nil {
		return fmt.Errorf("tools list: %w", err)
	}
	tools := listTools(s.Bus.Catalog())
	if err := addLimits(ctx, s.Bus, tools); err != nil {
		return fmt.Errorf("tools list: %w", err)
	}
	if c.JSON {
		return printToolsJSON(app, tools)
	}
	return printTools(app, tools)
}

const quiet = 250 * time.Millisecond // without news: the catalog has been read

// complete waits until the catalog, which is read entry by entry, has something in it and nothing more comes.
func complete(ctx context.Context, c *bus.Catalog, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	still := time.NewTimer(quiet)
	defer still.Stop()
	for {
		_, change := c.Changes()
		still.Reset(quiet)
		select {
		case <-change:
		case <-still.C:
			if len(c.Tools()) > 0 {
				return nil
			}
		case <-ctx.Done():
			return incomplete(ctx, c, within)
		}
	}
}

// incomplete says why waiting for the catalog ended before it was quiet.
func incomplete(ctx context.Context, c *bus.Catalog, within time.Duration) error {
	switch {
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return ctx.Err()
	case len(c.Tools()) > 0:
		return nil // workers come and go all the time
	}
	return fmt.Errorf("no worker came within %v; start one: toolworker serve --queue files", within)
}

func listTools(c *bus.Catalog) []listedTool {
	workers := c.Workers()
	var list []listedTool
	for _, t := range c.Tools() {
		l := listedTool{Tool: t, Parameters: json.RawMessage(t.Parameters)}
		for _, w := range workers {
			if w.Queue == t.Queue && slices.ContainsFunc(w.Tools, func(o schema.Tool) bool { return o.Name == t.Name }) {
				l.Workers++
				l.Slots += w.Slots
			}
		}
		list = append(list, l)
	}
	return list
}

// addLimits asks for the limit of each queue.
func addLimits(ctx context.Context, b *bus.Bus, tools []listedTool) (err error) {
	limits := map[string]int{}
	for i := range tools {
		queue := tools[i].Queue
		limit, known := limits[queue]
		if !known {
			if limit, _, err = b.LimitOf(ctx, queue); err != nil {
				return err
			}
			limits[queue] = limit
		}
		tools[i].Limit = limit
	}
	return nil
}

func printToolsJSON(app *cli.App, tools []listedTool) error {
	enc := json.NewEncoder(app.Out)
	enc.SetEscapeHTML(false)
	for _, t := range tools {
		if !json.Valid(t.Parameters) {
			t.Parameters = nil // a stranger's worker announced it
		}
		if err := enc.Encode(t); err != nil {
			return fmt.Errorf("tools list: %w", err)
		}
	}
	return nil
}

func printTools(app *cli.App, tools []listedTool) error {
	w := tabwriter.NewWriter(app.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "QUEUE\tTOOL\tWORKERS\tSLOTS\tRUNS\tEFFECT\tDESCRIPTION")
	for _, t := range tools {
		runs := "once"
		if t.Idempotent {
			runs = "again"
		}
		effect := t.Effect
		if effect == "" {
			effect = schema.EffectDestructive
		}
		slots := strconv.Itoa(t.Slots)
		if t.Limit > 0 {
			slots = fmt.Sprintf("%d, at most %d", t.Slots, t.Limit)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", t.Queue, word(t.Name), t.Workers, slots, runs, word(effect), firstSentence(word(t.Description)))
	}
	return w.Flush()
}

// word keeps a worker's text on its place in the table.
func word(s string) string { return strings.Join(strings.Fields(view.Clean(s)), " ") }

// firstSentence is what a table has room for.
func firstSentence(s string) string {
	if i := strings.Index(s, ". "); i >= 0 {
		s = s[:i+1]
	}
	return schema.Cut(s, 100)
}

// ToolsCallCmd is the command tools call.
type ToolsCallCmd struct {
	fleetFlags
	Name    string        `arg:"" help:"Name of the tool; queue/name where two queues offer it."`
	Args    string        `arg:"" optional:"" default:"{}" help:"Arguments, a JSON object."`
	Queue   string        `help:"Queue whose workers are meant."`
	Timeout time.Duration `help:"Bound on waiting plus running; default the tool's own, or 5 minutes."`
	JSON    bool          `name:"json" help:"Print the whole result as JSON."`
}

// Validate checks what kong cannot.
func (c *ToolsCallCmd) Validate() error {
	if c.Timeout < 0 {
		return fmt.Errorf("--timeout %v: want more than 0", c.Timeout)
	}
	return nil
}

// Run calls the tool. Its failure is the command's.
func (c *ToolsCallCmd) Run(ctx context.Context, app *cli.App) error {
	args, _, bad := schema.Canonical(c.Args)
	if bad != nil {
		return cli.Usagef("tools call: arguments: %s", bad.Message)
	}
	s, err := c.open(ctx, app)
	if err != nil {
		return err
	}
	defer s.Close()
	tool, err := c.find(ctx, s.Bus)
	if err != nil {
		return fmt.Errorf("tools call: %w", err)
	}
	// What is wrong with the arguments need not travel to a worker to be said.
	if bad := schema.NewValidator().Check(&tool, args); bad != nil {
		return cli.Usagef("tools call: %s: %s", tool.Name, bad.Message)
	}
	p := schema.Principal{ID: localUser(), Scopes: []string{schema.ScopeTool + ":" + tool.Queue + "/" + tool.Name}}
	if tool.Queue == schema.QueueAgents {
		p.Scopes = handing()
	}
	r, err := s.Bus.Invoke(ctx, tool, args, p, c.Timeout)
	if err != nil {
		return fmt.Errorf("tools %w", err)
	}
	return c.print(app, &r)
}

// find waits for the tool.
func (c *ToolsCallCmd) find(ctx context.Context, b *bus.Bus) (schema.Tool, error) {
	pattern := c.Name
	if c.Queue != "" {
		pattern = c.Queue + "/" + c.Name
	}
	sel := b.Select(pattern)
	if err := sel.Wait(ctx, c.Wait); err != nil {
		return schema.Tool{}, c.missing(ctx, b, pattern, err)
	}
	tools, err := sel.Tools(ctx)
	switch {
	case err != nil:
		return schema.Tool{}, err
	case len(tools) != 1:
		return schema.Tool{}, fmt.Errorf("%q names %d tools; want one", pattern, len(tools))
	}
	return tools[0], nil
}

// missing puts the nearest names in place of an error, unless the tool is there and something else is wrong.
func (c *ToolsCallCmd) missing(ctx context.Context, b *bus.Bus, pattern string, err error) error {
	var names []string
	for _, t := range b.Catalog().Tools() {
		if schema.MatchTool(pattern, t.Queue, t.Name) {
			return err
		}
		name := t.Name
		if t.Queue == schema.QueueAgents {
			name = t.Queue + "/" + name // an agent is named with its queue only
		}
		names = append(names, name)
	}
	if len(names) == 0 || ctx.Err() != nil {
		return err
	}
	return errors.New(schema.Unknown(c.Name, names).Message)
}

func (c *ToolsCallCmd) print(app *cli.App, r *schema.Result) error {
	if c.JSON {
		enc := json.NewEncoder(app.Out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(r); err != nil {
			return fmt.Errorf("tools call: %w", err)
		}
	} else if r.OK {
		c.printOutput(app, r.Output)
	} else {
		fmt.Fprintln(app.Err, view.Clean(r.Output))
	}
	if !r.OK {
		return cli.ErrFailed
	}
	return nil
}

// printOutput prints an output as it stands for a file or another program, and without what steers a terminal to one.
func (c *ToolsCallCmd) printOutput(app *cli.App, text string) {
	if view.IsTerminal(app.Out) {
		text = view.Clean(text)
	}
	fmt.Fprintln(app.Out, strings.TrimSuffix(text, "\n"))
}
