package loop

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sourcegraph/conc/panics"

	"github.com/jetcrew/jetcrew/schema"
)

// plan puts the calls of an answer into turn t, each in its slot with its decision: normalised, its tool found, its
// arguments validated, then the guards asked. block, if not nil, is the decision about all of them. An error is about
// an answer with which no turn can be made.
func (x *exchange) plan(t *schema.Turn, raw []schema.RawCall, tools []schema.Tool, block *schema.Decision) error {
	if len(raw) > maxCalls {
		return fmt.Errorf("the model's answer has %d calls, and a turn takes at most %d", len(raw), maxCalls)
	}
	t.Calls = schema.Normalise(t.N, raw)
	for i := range t.Calls {
		c := &t.Calls[i]
		if block != nil {
			c.Decision = *block
		} else {
			x.decide(c, tools)
		}
	}
	x.share(t)
	fit(t)
	for i := range t.Calls {
		if c := &t.Calls[i]; !mayRun(c) {
			c.Queue = schema.QueueNone
		}
	}
	return trim(t)
}

// decide takes the decision about one call.
func (x *exchange) decide(c *schema.TurnCall, tools []schema.Tool) {
	tool, err := x.meant(c, tools)
	if err != nil {
		c.Decision = invalid(err)
		return
	}
	x.equip(c, tool)
	c.WithinMS = max(0, x.agent.cfg.Agent.Parallel.TimeoutMS)
	if c.Queue == schema.QueueAgents {
		c.WithinMS = cmp.Or(c.WithinMS, c.TimeoutMS, x.agent.cfg.Agent.Governance.HandoffWithin(c.Tool), childWithin.Milliseconds())
	}
	if c.Decision.Action == schema.ActionInvalid {
		return // the arguments are no object
	}
	if err := x.check(c, tool); err != nil {
		c.Decision = invalid(err)
		return
	}
	if !x.refuses(c, tool) {
		x.askGuards(c, tool)
	}
}

// equip fills in what is known of the call's tool, and what the agent's file sets about it.
func (x *exchange) equip(c *schema.TurnCall, tool *schema.Tool) {
	c.Target, c.Source, c.Queue, c.Effect, c.Idempotent = tool.Target, tool.Source, tool.Queue, tool.Effect, tool.Idempotent
	c.TimeoutMS, c.Digest = tool.TimeoutMS, tool.Digest
	g := x.agent.cfg.Agent.Governance
	if g == nil {
		return
	}
	name := cmp.Or(c.Target, c.Tool)
	c.Aborts = schema.MatchesTool(g.AbortOn, c.Queue, name)
	if set := g.Setting(c.Queue, name); set != nil {
		c.Idempotent = c.Idempotent && !set.Once
		if set.TimeoutMS > 0 && (c.TimeoutMS <= 0 || set.TimeoutMS < c.TimeoutMS) {
			c.TimeoutMS = set.TimeoutMS
		}
	}
}

// mayRun tells whether a call runs, be it after a verdict.
func mayRun(c *schema.TurnCall) bool {
	return c.Decision.Action == schema.ActionAllow || c.Decision.Action == schema.ActionAsk
}

// check validates what a call would be published with.
func (x *exchange) check(c *schema.TurnCall, tool *schema.Tool) *schema.Error {
	if err := schema.CheckQueue(tool.Queue); err != nil && !isOwn(tool.Name, tool.Queue) {
		return &schema.Error{Type: schema.NoWorker, Message: fmt.Sprintf("tool %s has no workers", tool.Name)}
	}
	return x.agent.validator.Check(tool, c.Args)
}

// find returns the tool that a call means. A name that is wrong in a way that leaves only one tool is repaired, and
// the call says so.
func find(c *schema.TurnCall, tools []schema.Tool) (*schema.Tool, *schema.Error) {
	if t := named(c.Tool, tools); t != nil {
		return t, nil
	}
	known := make([]string, len(tools))
	for i := range tools {
		known[i] = tools[i].Name
	}
	name, ok := schema.Resolve(c.Tool, known)
	if !ok {
		return nil, schema.Unknown(c.Tool, known)
	}
	c.Notes = append(c.Notes, fmt.Sprintf("tool name repaired from %.80q", c.Tool))
	c.Tool = name
	return named(name, tools), nil
}

func named(name string, tools []schema.Tool) *schema.Tool {
	for i := range tools {
		if tools[i].Name == name {
			return &tools[i]
		}
	}
	return nil
}

func invalid(e *schema.Error) schema.Decision {
	return schema.Decision{Action: schema.ActionInvalid, Rule: "structure", Type: e.Type, Text: e.Message}
}

// askGuards asks the guards in their order; the first decision other than to go on wins, but a later refusal is heard
// where a person would be asked. The principal's authority has the last word.
func (x *exchange) askGuards(c *schema.TurnCall, tool *schema.Tool) {
	c.Decision = schema.Decision{Action: schema.ActionAllow}
	for _, g := range x.agent.cfg.Guards {
		args := c.Args
		if c.Decision = c.Decision.And(x.askGuard(g, c)); c.Decision.Ends() {
			return
		}
		if c.Args == args {
			continue
		}
		if c.Raw == "" {
			c.Raw = string(args)
		}
		c.Notes = append(c.Notes, "arguments changed by a guard")
		if err := x.check(c, tool); err != nil {
			c.Decision = invalid(err)
			return
		}
	}
	if d, ok := x.permitted(c); !ok {
		c.Decision = d
	}
}

// permitted tells whether the authority of the run's principal allows the call; if not, d is the denial.
func (x *exchange) permitted(c *schema.TurnCall) (d schema.Decision, ok bool) {
	if isOwn(c.Tool, c.Queue) { // of what the run has got already
		return d, true
	}
	p := x.agent.cfg.Principal
	why := schema.Permits(p.Scopes, schema.Scoped{
		Queue: c.Queue, Tool: cmp.Or(c.Target, c.Tool), Effect: c.Effect, Tenant: p.Tenant,
	}, time.Now())
	return schema.Decision{Action: schema.ActionDeny, Rule: "authority", Text: why}, why == ""
}

// askGuard asks one guard about a copy, of which only what a guard may change is taken over.
func (x *exchange) askGuard(g Guard, c *schema.TurnCall) schema.Decision {
	seen := *c
	d := x.protect(c, func() schema.Decision { return g.Decide(x.scene(x.stop.calls), &seen) })
	c.Args, c.Bound = seen.Args, seen.Bound
	return d
}

// protect makes a denial of a panic.
func (x *exchange) protect(c *schema.TurnCall, decide func() schema.Decision) (d schema.Decision) {
	var catch panics.Catcher
	catch.Try(func() { d = decide() })
	if p := catch.Recovered(); p != nil {
		x.agent.cfg.Logger.Error("a guard panicked", "run", x.id, "tool", c.Tool, "panic", schema.Cut(fmt.Sprint(p.Value), maxPanic), "stack", string(p.Stack))
		return schema.GuardPanicked()
	}
	return d
}

// scene returns ctx with what guards may want to know of the run.
func (x *exchange) scene(ctx context.Context) context.Context {
	spec := &x.agent.cfg.Agent
	s := schema.Scene{Run: x.id, Agent: spec.ID, Principal: x.agent.cfg.Principal, Depth: x.open.Depth}
	if spec.Governance != nil {
		s.Environment = spec.Governance.Environment
	}
	return schema.WithScene(ctx, s)
}
