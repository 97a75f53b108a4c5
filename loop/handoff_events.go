package loop

import (
	"cmp"

	"go.opentelemetry.io/otel/trace"

	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

// How a handoff stands, HandoffInfo.Status.
const (
	HandoffStarting  = "starting"
	HandoffCompleted = "completed"
	HandoffFailed    = "failed"
	HandoffFallback  = "fallback" // failed or denied, with a text instead of the sub-agent's answer
	HandoffDenied    = "denied"
)

// HandoffInfo names a handoff in an event.
type HandoffInfo struct {
	ID       string `json:"id"`                 // handoff: and the label of the call
	Subagent string `json:"subagent"`           // id of the agent
	Run      string `json:"run,omitempty"`      // its run, that of the first attempt; absent when it was refused
	Depth    int    `json:"depth"`              // runs above that one
	Session  string `json:"session"`            // new or reuse
	Status   string `json:"status"`             // starting, completed, failed, fallback or denied
	Attempts int    `json:"attempts,omitempty"` // handoff_end: runs that it took
}

// handoff describes the call of a sub-agent; nil: the call is another one, or was not valid.
func (x *exchange) handoff(t *schema.Turn, i int) *HandoffInfo {
	c := &t.Calls[i]
	if !isHandoff(c) || c.Decision.Action == schema.ActionInvalid {
		return nil
	}
	info := &HandoffInfo{ID: "handoff:" + c.Label, Subagent: cmp.Or(c.Target, c.Tool), Depth: len(x.open.Lineage) + 1, Session: schema.SessionNew, Status: HandoffStarting}
	if x.reuses(c) {
		info.Session = schema.SessionReuse
	}
	if c.Queue == schema.QueueAgents {
		info.Run = schema.ChildRun(x.id, t.N, i, 1)
	}
	return info
}

// handoffStart tells that a sub-agent's call begins, and marks its span.
func (x *exchange) handoffStart(t *schema.Turn, call *CallInfo, span trace.Span) {
	if h := x.handoff(t, call.Index); h != nil {
		tracing.SetHandoff(span, tracing.Handoff{ID: h.ID, Subagent: h.Subagent, Depth: h.Depth})
		x.emit(Event{Type: EventHandoffStart, Turn: t.N, Call: call, Handoff: h})
	}
}

// handoffSpan says in the span of a sub-agent's call how that came out.
func (x *exchange) handoffSpan(t *schema.Turn, i int, r *schema.Result, span trace.Span) {
	if h := x.handoff(t, i); h != nil {
		tracing.SetHandoff(span, tracing.Handoff{Status: x.handoffStatus(&t.Calls[i], r), Attempts: r.Spent.Attempts})
	}
}

// handoffEnd tells that a sub-agent's call has settled. settled is the event of that.
func (x *exchange) handoffEnd(t *schema.Turn, call *CallInfo, settled Event) {
	h := x.handoff(t, call.Index)
	if h == nil {
		return
	}
	e := Event{Type: EventHandoffEnd, Turn: t.N, Call: call, Handoff: h, ElapsedMS: settled.ElapsedMS, Error: settled.Error}
	h.Status = HandoffFailed
	if r := settled.Result; r != nil {
		h.Status, h.Attempts = x.handoffStatus(&t.Calls[call.Index], r), r.Spent.Attempts
		e.Text = r.Output
		if text, ok := x.fallback(&t.Calls[call.Index], r); ok {
			e.Text = text
		}
		if r.Error != nil {
			e.Error = r.Error.Message
		}
	}
	x.emit(e)
}

// handoffStatus says how a sub-agent's call came out.
func (x *exchange) handoffStatus(c *schema.TurnCall, r *schema.Result) string {
	if r.OK {
		return HandoffCompleted
	}
	if _, ok := x.fallback(c, r); ok {
		return HandoffFallback
	}
	status, instead := HandoffFailed, ""
	g := x.agent.cfg.Agent.Governance
	s := g.Subagent(c.Tool)
	if s != nil {
		instead = g.HandoffOf(s).OnError
	}
	if r.Error != nil && r.Error.Type == schema.Denied {
		status = HandoffDenied
		if instead = ""; s != nil && (c.Decision.Rule == ruleHandoff || c.Queue == schema.QueueAgents) {
			instead = g.HandoffOf(s).OnDenied
		}
	}
	if instead == schema.HandoffFallback && schema.HasFallback(r.Output) {
		return HandoffFallback
	}
	return status
}
