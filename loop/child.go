package loop

import (
	"bytes"
	"cmp"
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
	host   *Host
	run    schema.RunMessage
	call   *schema.Call
	parent *schema.Open     // nil: no orchestrator has opened its run
	policy *schema.Handover // of a sub-agent's call
}

// admit says why the call may not be started: a failure for the parent. nil: it may.
func (c *child) admit(ctx context.Context, args schema.AgentArgs) (*schema.Error, error) {
	switch {
	case strings.TrimSpace(args.Task) == "":
		return refuse(schema.InvalidArguments, `an agent is called with the arguments {"task": "…"}`)
	case !c.run.Deadline.IsZero() && time.Now().After(c.run.Deadline):
		return refuse(schema.Timeout, "not started before its deadline")
	case len(c.call.Lineage)+1 > schema.MaxDepth || c.call.Depth+1 > schema.MaxDepth:
		return tooDeep()
	}
	if bad, err := c.meetAbove(ctx); bad != nil || err != nil {
		return bad, err
	}
	if why := c.forbidden(); why != "" {
		return refuse(schema.Denied, "%s", why)
	}
	return nil, nil
}

// meetAbove reads the runs above the task, its parent first: what that one's own facts say of those above it is stronger
// than the call.
func (c *child) meetAbove(ctx context.Context) (*schema.Error, error) {
	runs := []string{c.call.Run}
	for i := 0; i < len(runs); i++ {
		o, err := c.host.opened(ctx, runs[i])
		switch {
		case errors.Is(err, schema.ErrPayload):
			return refuse(schema.Denied, "the run %s above this task cannot be read, and what it allows is not known", runs[i])
		case err != nil:
			return nil, err
		case o != nil && o.Agent != nil && o.Agent.ID == c.call.Tool:
			return refuse(schema.ToolFailed, "agent %.80q is at work above this call already: an agent cannot call itself, not through others either", c.call.Tool)
		case i > 0:
			continue
		}
		c.parent = o
		if runs = c.lineage(); len(runs) > schema.MaxDepth {
			return tooDeep()
		}
		slices.Reverse(runs) // the parent, which is the last one, is read already
	}
	return nil, nil
}

func refuse(t schema.ErrorType, format string, args ...any) (*schema.Error, error) {
	return &schema.Error{Type: t, Message: fmt.Sprintf(format, args...)}, nil
}

func tooDeep() (*schema.Error, error) {
	return refuse(schema.ToolFailed, "agents may call each other %d deep, not deeper", schema.MaxDepth)
}

// opened returns the first fact of another run, nil when there is none. schema.ErrPayload: it cannot be read, so that its
// bounds are not known either.
func (h *Host) opened(ctx context.Context, run string) (*schema.Open, error) {
	facts, err := h.cfg.Journal.Facts(ctx, run, 0, schema.KindOpen)
	if err != nil {
		return nil, fmt.Errorf("read lineage: %w", err)
	}
	o := new(schema.Open)
	if len(facts) == 0 {
		return nil, nil
	}
	if err := schema.Decode(facts[0].Data, o); err != nil {
		return nil, fmt.Errorf("read lineage: open of %s: %w: %w", run, schema.ErrPayload, err)
	}
	return o, nil
}

// forbidden asks the policy under which the parent runs about a sub-agent's call once more: a call that was not decided
// about there is not started here. It returns why, "" when the call may start.
func (c *child) forbidden() (why string) {
	if c.call.Source != schema.SourceSubagent {
		return ""
	}
	if c.parent == nil || c.parent.Agent == nil {
		return "no run is known that could hand over this task"
	}
	g, name := c.parent.Agent.Governance, cmp.Or(c.call.As, c.call.Tool)
	s := g.Subagent(name)
	if s == nil || s.Agent != c.call.Tool {
		return "the run that hands over this task has no such sub-agent"
	}
	h := g.HandoffOf(s)
	if why := h.Refuses(name, len(c.lineage())); why != "" {
		return h.Denial(why)
	}
	c.policy = &schema.Handover{Name: name, Attempt: 1, Retries: h.MaxRetries, TimeoutMS: h.TimeoutMS}
	if h.OnError == schema.HandoffFallback {
		c.policy.Fallback = h.Fallback
	}
	if s.Session == schema.SessionReuse {
		c.policy.Session, c.policy.Previous = schema.SessionReuse, c.call.Previous
	}
	return ""
}

// lineage is that of the child: its parent's, and the parent. What the parent's own facts say is stronger than the call.
func (c *child) lineage() []string {
	above := c.call.Lineage
	if c.parent != nil {
		above = c.parent.Lineage
	}
	return append(slices.Clone(above), c.call.Run)
}

// settle writes the parent's result of a call that is not started, provided nobody has opened the child.
func (c *child) settle(ctx context.Context, e *schema.Error) (schema.Taken, error) {
	r := c.call.Fail(e.Type, e.Message)
	if e.Type == schema.Denied {
		r.Output = schema.DeniedText(r.Error.Message)
	}
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

// open returns what the child's first fact says beside the agent's file. It acts for its parent's principal, whatever the
// call says, with no more than both allow, and under the policies of both.
func (c *child) open(o *schema.Open) *schema.Open {
	o.Parent = &schema.CallRef{Run: c.call.Run, Turn: c.call.Turn, Index: c.call.Index, Label: c.call.Label}
	o.Lineage, o.Handoff = c.lineage(), c.policy
	o.Depth, o.Keep = len(o.Lineage), false
	if c.parent != nil {
		o.Agent = o.Agent.Under(c.parent.Agent)
		scopes := schema.Within(c.parent.Principal.Scopes, o.Principal.Scopes)
		o.Principal = completed(c.parent.Principal, o.Principal) // the open of a call outside any run may name nobody
		o.Principal.Scopes = scopes
	}
	if !c.run.Deadline.IsZero() {
		o.DeadlineMS = c.run.Deadline.UnixMilli()
	}
	c.bound(o)
	return o
}

// bound keeps what the child may spend within what its parent may, whatever the call says; the parent's own calls say less.
func (c *child) bound(o *schema.Open) {
	p := c.parent
	if p == nil || p.Agent == nil {
		return
	}
	l, b := p.Agent.Limits, p.Budget
	o.Budget = schema.Budget{
		Steps:  least(max(0, o.Budget.Steps), least(b.Steps, l.MaxSteps)),
		Tokens: least(max(0, o.Budget.Tokens), least(b.Tokens, l.MaxTokens)),
		Cost:   least(max(0, o.Budget.Cost), least(b.Cost, l.MaxCost)),
	}
	o.DeadlineMS = least(o.DeadlineMS, p.DeadlineMS)
	if end := attemptEnd(p); !end.IsZero() {
		o.DeadlineMS = least(o.DeadlineMS, end.UnixMilli())
	}
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
	call, res := r.outcome(open)
	if r.retries(open, &res) {
		if again, err := r.again(ctx, open, res.Spent); err != nil || again {
			return err
		}
		call, res = r.outcome(open) // it was stopped meanwhile
	} else if err := r.stopOpened(ctx, open); err != nil {
		return err
	}
	if h := open.Handoff; h != nil && h.Fallback != "" && !res.OK {
		fallen := call.Fail(res.Error.Type, schema.WithFallback(res.Error.Message, h.Fallback))
		fallen.Spent = res.Spent
		res = fallen
	}
	res.Worker, res.StartedMS, res.EndedMS = r.agent.cfg.Instance, open.AtMS, nowMS()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBound)
	defer cancel()
	_, err := r.agent.cfg.Journal.Append(ctx, call.Run, call.ResultKey(schema.QueueAgents), &res, schema.Key{})
	if err != nil && !errors.Is(err, schema.ErrExists) {
		return fmt.Errorf("write result of parent call %s: %w", call, err)
	}
	return nil
}

// outcome returns the call that the run is, and what the run means for it.
func (r *Run) outcome(open *schema.Open) (*schema.Call, schema.Result) {
	p := open.Parent
	call := &schema.Call{Run: p.Run, Turn: p.Turn, Index: p.Index, Label: p.Label, Tool: r.agent.cfg.Agent.ID}
	h := open.Handoff
	if h != nil {
		call.As = h.Name
	}
	res := r.outcomeFor(call, open)
	res.Spent = r.spent(1)
	if h != nil {
		if res.OK {
			res.Output = handed(r.agent.cfg.Agent.ID, h.Name, res.Output, r.state.Turns())
		}
		res.Spent = res.Spent.Add(h.Spent)
		res.Spent.Attempts = h.Attempt
	}
	return call, res
}

// handed is the output of a sub-agent's call.
func handed(agent, tool, output string, steps int) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(schema.Handed{Subagent: agent, ToolName: tool, Output: output, Steps: steps}) // texts always encode
	return strings.TrimSuffix(b.String(), "\n")
}

// outcomeFor is what the run means for the call that it is.
func (r *Run) outcomeFor(call *schema.Call, open *schema.Open) schema.Result {
	a := r.state.Answer(r.state.Answers())
	late := open.DeadlineMS > 0 && nowMS() >= open.DeadlineMS
	switch {
	case r.givenUp == "" && a == nil && !late && r.timedOut():
		return call.Failf(schema.Timeout, "the agent was stopped after %s, the time of one attempt", time.Duration(open.Handoff.TimeoutMS)*time.Millisecond)
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
	case schema.ReasonMaxSteps, schema.ReasonWallClock, schema.ReasonTokens, schema.ReasonCost, schema.ReasonRepeat:
		return true
	}
	return false
}
