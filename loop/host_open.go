package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

// open has the first fact of a run written by this process or another. What it returns says why there is no run to
// work on; nil: there is.
func (h *Host) open(ctx context.Context, r *Run, m schema.RunMessage) (*schema.Taken, error) {
	if m.Call == nil {
		if m.Delivery > maxUnknown {
			return &schema.Taken{Act: schema.TakenDone, Reason: "no such run"}, nil
		}
		return &schema.Taken{Act: schema.TakenBusy, After: busyDelay, Reason: "the run is not known yet"}, nil
	}
	var args schema.AgentArgs
	if err := json.Unmarshal([]byte(m.Call.Args), &args); err != nil {
		args = schema.AgentArgs{}
	}
	c := &child{host: h, run: m, call: m.Call}
	if m.Call.Turn > 0 {
		bad, err := c.admit(ctx, args)
		if err != nil {
			return nil, err
		}
		if bad != nil {
			taken, err := c.settle(ctx, bad)
			return &taken, err
		}
	} else if strings.TrimSpace(args.Task) == "" {
		return &schema.Taken{Act: schema.TakenDead, Reason: `a run is started with the arguments {"task": "…"}`}, nil
	}
	spec, ok := h.cfg.Find(m.Call.Tool)
	if !ok && m.Call.Turn == 0 && m.Delivery > maxUnserved && r.toldToStop() {
		spec, ok = schema.AgentSpec{ID: m.Call.Tool}, true // nobody seems to serve it, and to be closed it needs neither model nor tools
	}
	if !ok && m.Call.Turn > 0 && m.Unserved {
		taken, err := c.settle(ctx, &schema.Error{Type: schema.NoWorker, Message: fmt.Sprintf("nobody serves the agent %.80q", m.Call.Tool)})
		return &taken, err
	}
	if !ok {
		return &schema.Taken{Act: schema.TakenCannot, After: cannotAfter(m.Delivery), Reason: fmt.Sprintf("agent %.80q is not served here", m.Call.Tool)}, nil
	}
	principal, err := h.admit(m.Call, spec)
	if err != nil {
		return c.turnAway(ctx, err)
	}
	open := &schema.Open{
		Kind: schema.RunAgent, Agent: &spec, Chain: h.cfg.Chain, Principal: principal, Keep: args.Keep, Budget: m.Call.Budget, AtMS: nowMS(),
	}
	bad, err := c.earlier(ctx, open)
	switch {
	case err != nil:
		return nil, err
	case bad != nil:
		taken, err := c.settle(ctx, bad)
		return &taken, err
	}
	return h.openFor(ctx, r, c, open)
}

// admit returns on whose behalf the run of a call acts.
func (h *Host) admit(call *schema.Call, spec schema.AgentSpec) (p schema.Principal, err error) {
	p = call.Principal
	if h.cfg.Admit != nil {
		if p, err = h.cfg.Admit(call, spec); err != nil {
			return p, err
		}
	}
	switch p = completed(p, h.cfg.Principal); {
	case p.ID == "":
		return p, errors.New("a run is started on somebody's behalf: the call's principal has no id")
	case len(p.Scopes) == 0:
		return p, errors.New("a run is started with an authority: the call's principal has no scopes")
	}
	return p, schema.CheckScopes(p.Scopes)
}

// completed returns p with what it leaves out from another principal.
func completed(p, from schema.Principal) schema.Principal {
	if p.ID == "" {
		p.ID, p.Tenant = from.ID, from.Tenant
	}
	if len(p.Scopes) == 0 {
		p.Scopes = from.Scopes
	}
	return p
}

// openFor writes the first fact of a new run, or reads the one that somebody else wrote. That of a child is refused
// once its call has a result.
func (h *Host) openFor(ctx context.Context, r *Run, c *child, open *schema.Open) (*schema.Taken, error) {
	unless := schema.Key{}
	if c.call.Turn > 0 {
		open = c.open(open)
		unless = c.call.ResultKey(schema.QueueAgents)
		unless.Run = c.call.Run
	}
	if g := open.Agent.Governance; g != nil {
		open.Principal.Scopes = schema.Within(open.Principal.Scopes, g.Authority)
	}
	ctx, span := r.startSpan(ctx, open.Agent)
	open.Trace = tracing.TraceMap(ctx) // whoever goes on with the run goes on with its trace
	err := r.write(ctx, schema.OpenKey(), open, unless)
	if err == nil {
		r.span = span
		return nil, nil
	}
	span.End() // of no run
	switch {
	case errors.Is(err, schema.ErrGuarded):
		return &schema.Taken{Act: schema.TakenDone, Reason: "the call is settled"}, nil
	case errors.Is(err, schema.ErrExists):
		return nil, r.refresh(ctx)
	case errors.Is(err, schema.ErrNoRoom) && c.call.Turn > 0:
		taken, err := c.settle(ctx, &schema.Error{Type: schema.QueueFull, Message: schema.ErrNoRoom.Error()})
		return &taken, err
	case errors.Is(err, schema.ErrNoRoom):
		return &schema.Taken{Act: schema.TakenCannot, After: cannotDelay, Reason: err.Error()}, nil
	}
	return nil, err
}
