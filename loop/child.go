package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// childWithin bounds a call of an agent that has no bound of its own. Waiting for it costs nothing.
const childWithin = 24 * time.Hour

// child is a call of an agent on its way to a run of its own.
type child struct {
	host *Host
	run  schema.RunMessage
	call *schema.Call
}

// admit says why the call may not be started: a failure for the parent. nil: it may.
func (c *child) admit(ctx context.Context, args schema.AgentArgs) (*schema.Error, error) {
	refuse := func(t schema.ErrorType, format string, a ...any) (*schema.Error, error) {
		return &schema.Error{Type: t, Message: fmt.Sprintf(format, a...)}, nil
	}
	switch {
	case strings.TrimSpace(args.Task) == "":
		return refuse(schema.InvalidArguments, `an agent is called with the arguments {"task": "…"}`)
	case !c.run.Deadline.IsZero() && time.Now().After(c.run.Deadline):
		return refuse(schema.Timeout, "not started before its deadline")
	case len(c.call.Lineage)+1 > schema.MaxDepth || c.call.Depth+1 > schema.MaxDepth:
		return refuse(schema.ToolFailed, "agents may call each other %d deep, not deeper", schema.MaxDepth)
	}
	for _, run := range c.lineage() {
		facts, err := c.host.cfg.Journal.Facts(ctx, run, 0, schema.KindOpen)
		if err != nil {
			return nil, fmt.Errorf("read lineage: %w", err)
		}
		var o schema.Open
		if len(facts) > 0 && schema.Decode(facts[0].Data, &o) == nil && o.Agent != nil && o.Agent.ID == c.call.Tool {
			return refuse(schema.ToolFailed, "agent %.80q is at work above this call already: an agent cannot call itself, not through others either", c.call.Tool)
		}
	}
	return nil, nil
}

// lineage is that of the child: its parent's, and the parent.
func (c *child) lineage() []string { return append(slices.Clone(c.call.Lineage), c.call.Run) }

// settle writes the parent's result of a call that is not started, provided nobody has opened the child.
func (c *child) settle(ctx context.Context, e *schema.Error) (schema.Taken, error) {
	r := c.call.Fail(e.Type, e.Message)
	r.Worker, r.EndedMS = c.host.cfg.Instance, nowMS()
	_, err := c.host.cfg.Journal.Append(ctx, c.call.Run, c.call.ResultKey(schema.QueueAgents), &r, c.call.StartKey(schema.QueueAgents))
	switch {
	case errors.Is(err, schema.ErrGuarded):
		return schema.Taken{Act: schema.TakenBusy, After: busyDelay, Reason: "somebody has started the call"}, nil
	case err != nil && !errors.Is(err, schema.ErrExists):
		return schema.Taken{}, err
	}
	return schema.Taken{Act: schema.TakenDone}, nil
}

// turnAway refuses to start the run: the parent of a child is told, the message of any other goes to the dead letters.
func (c *child) turnAway(ctx context.Context, why error) (*schema.Taken, error) {
	if c.call.Turn == 0 {
		return &schema.Taken{Act: schema.TakenDead, Reason: why.Error()}, nil
	}
	taken, err := c.settle(ctx, &schema.Error{Type: schema.ToolFailed, Message: why.Error()})
	return &taken, err
}

// open returns what the child's first fact says beside the agent.
func (c *child) open(o *schema.Open) *schema.Open {
	o.Parent = &schema.CallRef{Run: c.call.Run, Turn: c.call.Turn, Index: c.call.Index, Label: c.call.Label}
	o.Lineage = c.lineage()
	o.Depth, o.Keep = len(o.Lineage), false
	if !c.run.Deadline.IsZero() {
		o.DeadlineMS = c.run.Deadline.UnixMilli()
	}
	return o
}

// task is what the agent is told: the task, and behind it what is known already.
func task(args schema.JSONText) (text string, ok bool) {
	var a schema.AgentArgs
	if json.Unmarshal([]byte(args), &a) != nil || strings.TrimSpace(a.Task) == "" {
		return "", false
	}
	if strings.TrimSpace(a.Context) != "" {
		a.Task += "\n\nWhat is known already:\n" + a.Context
	}
	return a.Task, true
}

// report writes the parent's result of a run that is a call, before the run is closed. The first outcome stands.
func (r *Run) report(ctx context.Context) error {
	open := r.state.Open()
	if open == nil || open.Parent == nil {
		return nil
	}
	p := open.Parent
	call := &schema.Call{Run: p.Run, Turn: p.Turn, Index: p.Index, Label: p.Label, Tool: r.agent.cfg.Agent.ID}
	res := r.outcomeFor(call, open)
	res.Worker, res.StartedMS, res.EndedMS = r.agent.cfg.Instance, open.AtMS, nowMS()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBound)
	defer cancel()
	_, err := r.agent.cfg.Journal.Append(ctx, p.Run, call.ResultKey(schema.QueueAgents), &res, schema.Key{})
	if err != nil && !errors.Is(err, schema.ErrExists) {
		return fmt.Errorf("write result of parent call %s: %w", call, err)
	}
	return nil
}

// outcomeFor is what the run means for the call that it is.
func (r *Run) outcomeFor(call *schema.Call, open *schema.Open) schema.Result {
	a := r.state.Answer(r.state.Answers())
	late := open.DeadlineMS > 0 && nowMS() >= open.DeadlineMS
	switch {
	case r.givenUp != "":
		return call.Fail(schema.WorkerLost, r.givenUp)
	case a == nil && late:
		return call.Fail(schema.Timeout, "the agent was stopped at the call's deadline")
	case a == nil:
		return call.Fail(schema.Cancelled, "the agent was stopped")
	case a.Text != "" && (a.Reason == schema.ReasonDone || a.Error == "" || r.limited(a.Reason)):
		return call.Done(schema.Cut(a.Text, maxTurn))
	}
	why := a.Error
	if why == "" {
		why = "the agent ended without an answer (" + string(a.Reason) + ")"
	}
	return call.Fail(schema.ToolFailed, schema.Cut(why, maxWhy))
}

// limited tells whether a reason is a limit, behind which the model still gave an answer.
func (r *Run) limited(reason schema.Reason) bool {
	switch reason {
	case schema.ReasonMaxSteps, schema.ReasonWallClock, schema.ReasonTokens, schema.ReasonRepeat:
		return true
	}
	return false
}
