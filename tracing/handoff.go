package tracing

import "go.opentelemetry.io/otel/trace"

// Handoff says what a sub-agent's call is.
type Handoff struct {
	ID       string
	Subagent string // id of the agent
	Depth    int    // runs above the sub-agent's
	Status   string // how it ended; empty: it has not
	Attempts int    // runs that it took
}

// SetHandoff marks the span of a tool's call as that of a handoff: it begins and ends with it.
func SetHandoff(span trace.Span, h Handoff) {
	if !span.IsRecording() {
		return
	}
	if h.Status != "" {
		span.SetAttributes(AttrStatus.String(h.Status), AttrAttempts.Int(h.Attempts))
		return
	}
	span.SetAttributes(AttrHandoff.String(h.ID), AttrSubagent.String(h.Subagent), AttrDepth.Int(h.Depth))
}
