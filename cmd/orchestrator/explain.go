package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/schema"
)

// ExplainCmd is the command explain.
type ExplainCmd struct {
	cli.Connection
	File string        `short:"f" default:"agent.yaml" type:"path" placeholder:"FILE" help:"Agent file (agent.yaml)."`
	Wait time.Duration `default:"5s" help:"How long to wait for workers, where there is a server."`
	JSON bool          `name:"json" help:"One JSON object."`
}

// Help is the command's long help.
func (*ExplainCmd) Help() string {
	return `Says what the model of an agent sees, where its calls run, and what decides about them on the way. With a server (--nats, NATS_URL) the tools are those that live workers offer; without one only the names in the file are known, so what depends on a tool's effect is said with an if. Nothing is started and no model is asked.`
}

// explanation is what a file comes to.
type explanation struct {
	Agent       string          `json:"agent"`
	Name        string          `json:"name,omitempty"`
	Model       string          `json:"model"`
	Environment string          `json:"environment,omitempty"`
	Live        bool            `json:"live"` // the tools are those of live workers
	Tools       []explainedTool `json:"tools"`
	Missing     []string        `json:"missing,omitempty"` // patterns that no live worker has a tool for
	Executor    []string        `json:"executor"`
	Chain       []link          `json:"chain"`
}

// link is one step on the way of a call.
type link struct {
	Step  string   `json:"step"`
	Says  []string `json:"says"`
	empty bool     // nothing of it stands in the file
}

// Run prints the explanation.
func (c *ExplainCmd) Run(ctx context.Context, app *cli.App) error {
	f, err := openAgent(c.File)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	if bad := governanceProblems(f); len(bad) > 0 {
		return cli.Usagef("%w", f.Fail(bad...))
	}
	e := explain(&f.Agent)
	if c.URL != "" {
		if err := c.ask(ctx, app, &f.Agent, e); err != nil {
			return fmt.Errorf("explain: %w", err)
		}
	}
	e.weigh(&f.Agent)
	if c.JSON {
		enc := json.NewEncoder(app.Out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(e)
	}
	return e.print(app)
}

// ask replaces the patterns of the file by what live workers offer for them.
func (c *ExplainCmd) ask(ctx context.Context, app *cli.App, spec *schema.AgentSpec, e *explanation) error {
	local := cli.Local{Connection: c.Connection}
	s, err := local.Open(ctx, app)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := complete(ctx, s.Bus.Catalog(), c.Wait); err != nil && ctx.Err() != nil {
		return err
	}
	offered := s.Bus.Catalog().Tools()
	chosen, err := s.Bus.Select(spec.Tools...).Tools(ctx)
	if err != nil {
		return err
	}
	e.Live = true
	e.Tools = slices.DeleteFunc(e.Tools, func(t explainedTool) bool { return t.agent == "" })
	for i := range chosen {
		e.Tools = append(e.Tools, liveTool(spec, &chosen[i]))
	}
	slices.SortStableFunc(e.Tools, func(a, b explainedTool) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range spec.Tools {
		if !slices.ContainsFunc(offered, func(t schema.Tool) bool { return schema.MatchTool(p, t.Queue, t.Name) }) {
			e.Missing = append(e.Missing, p)
		}
	}
	return nil
}

// explain says what can be said of a file alone.
func explain(spec *schema.AgentSpec) *explanation {
	g := cmp.Or(spec.Governance, &schema.Governance{})
	e := &explanation{
		Agent: spec.ID, Name: spec.Name, Model: spec.Model.Provider + "/" + spec.Model.Name, Environment: g.Environment,
		Tools: []explainedTool{}, Executor: executorOf(spec, g), Chain: chainOf(spec, g),
	}
	for _, p := range spec.Tools {
		e.Tools = append(e.Tools, fileTool(p))
	}
	for i := range g.Subagents {
		e.Tools = append(e.Tools, subagentTool(&g.Subagents[i]))
	}
	return e
}

// executorOf says where calls run.
func executorOf(spec *schema.AgentSpec, g *schema.Governance) []string {
	says := []string{"a call of a tool is work for the workers of its queue, which may be anywhere; it may be called only if the model sees it"}
	if len(g.Subagents) > 0 || slices.ContainsFunc(spec.Tools, func(p string) bool { return strings.HasPrefix(p, schema.QueueAgents+"/") }) {
		says = append(says, "a task for another agent is a run of its own, on any orchestrator that serves the agent")
	}
	return append(says, "read_output, by which the model reads the rest of a long output, runs in the orchestrator; it is shown once there is such an output")
}

// chainOf lists the steps on the way of a call, in their order.
func chainOf(spec *schema.AgentSpec, g *schema.Governance) []link {
	p := cmp.Or(g.Policy, &schema.Policy{})
	return []link{
		step("hooks", "none: they are Go code, and no file names them"),
		step("filters", filterLines(g.Filters)...),
		step("authority", authorityLines(g)...),
		step("policy", policyLines(p)...),
		step("approval", approvalLines(g, p)...),
		step("bind", bindLines(g)...),
		step("limits", limitLines(spec, g)...),
		step("handoff", handoffLines(g)...),
	}
}

func step(name string, says ...string) link {
	if len(says) == 0 {
		return link{Step: name, Says: []string{"nothing in the file"}, empty: true}
	}
	return link{Step: name, Says: says}
}
