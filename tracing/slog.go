package tracing

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// The keys that NewLogHandler adds to a log record, at its top level.
const (
	LogTraceID = "trace_id"
	LogSpanID  = "span_id"
)

// logHandler adds the ids of the span in the context. Attributes added to a record land in the innermost open group,
// so while a group is open the ids go to root, the handler before the first group, and what came after is applied to
// it anew.
type logHandler struct {
	slog.Handler                                   // with everything applied
	root         slog.Handler                      // before the first group
	after        []func(slog.Handler) slog.Handler // from the first group on
}

// NewLogHandler returns a handler that gives each record logged with a context in a trace the trace_id and span_id of
// that context, then hands it to inner. It is safe for concurrent use if inner is.
func NewLogHandler(inner slog.Handler) slog.Handler {
	return &logHandler{Handler: inner, root: inner}
}

// Handle adds the ids and hands the record on.
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return h.Handler.Handle(ctx, r)
	}
	ids := []slog.Attr{
		slog.String(LogTraceID, sc.TraceID().String()),
		slog.String(LogSpanID, sc.SpanID().String()),
	}
	if len(h.after) == 0 {
		r = r.Clone()
		r.AddAttrs(ids...)
		return h.Handler.Handle(ctx, r)
	}
	out := h.root.WithAttrs(ids)
	for _, apply := range h.after {
		out = apply(out)
	}
	return out.Handle(ctx, r)
}

// WithAttrs returns a handler that also adds attrs.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(h.after) == 0 {
		return NewLogHandler(h.Handler.WithAttrs(attrs))
	}
	return h.then(func(next slog.Handler) slog.Handler { return next.WithAttrs(attrs) })
}

// WithGroup returns a handler that puts what follows into a group; the ids stay outside.
func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.then(func(next slog.Handler) slog.Handler { return next.WithGroup(name) })
}

func (h *logHandler) then(apply func(slog.Handler) slog.Handler) slog.Handler {
	after := append(h.after[:len(h.after):len(h.after)], apply)
	return &logHandler{Handler: apply(h.Handler), root: h.root, after: after}
}
