package tracing

import (
	"context"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Bounds of what is carried, in bytes. Headers count against a message's payload and cost throughput, and any client
// can write them.
const (
	maxTracestate = 512 // what the W3C recommendation asks everyone to carry
	maxBaggage    = 1 << 10
)

// Inject writes the trace context of ctx into the headers h (a nats.Header converts to it): traceparent, tracestate
// and baggage, only when ctx is sampled. A tracestate above 512 bytes or a baggage above 1 KiB is left out. h must not
// be nil when ctx is sampled.
func Inject(ctx context.Context, h map[string][]string) {
	if !Sampled(ctx) {
		return
	}
	propagation.TraceContext{}.Inject(ctx, carrier(h))
	if len(carrier(h).Get(HeaderTracestate)) > maxTracestate {
		delete(h, HeaderTracestate)
	}
	if bag := baggage.FromContext(ctx).String(); bag != "" && len(bag) <= maxBaggage {
		carrier(h).Set(HeaderBaggage, bag)
	}
}

// Extract returns ctx with the remote trace context that the headers h hold, and their baggage. Headers without one
// valid traceparent change nothing: they start no trace. Oversized or malformed values are ignored.
func Extract(ctx context.Context, h map[string][]string) context.Context {
	c := carrier(h)
	if c.Get(HeaderTraceparent) == "" {
		return ctx
	}
	sc := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), c))
	if !sc.IsValid() {
		return ctx
	}
	if len(c.Get(HeaderTracestate)) > maxTracestate {
		sc = sc.WithTraceState(trace.TraceState{})
	}
	return withBaggage(trace.ContextWithRemoteSpanContext(ctx, sc), c.Get(HeaderBaggage))
}

func withBaggage(ctx context.Context, value string) context.Context {
	if value == "" || len(value) > maxBaggage {
		return ctx
	}
	bag, err := baggage.Parse(value)
	if err != nil {
		return ctx
	}
	return baggage.ContextWithBaggage(ctx, bag)
}

// TraceMap returns the trace context of ctx in the form a fact holds it, nil when ctx is not sampled.
func TraceMap(ctx context.Context) map[string]string {
	if !Sampled(ctx) {
		return nil
	}
	h := make(map[string][]string, 3)
	Inject(ctx, h)
	m := make(map[string]string, len(h))
	for k, v := range h {
		m[k] = v[0]
	}
	return m
}

// FromTraceMap is Extract for what TraceMap returned.
func FromTraceMap(ctx context.Context, m map[string]string) context.Context {
	if len(m) == 0 {
		return ctx
	}
	h := make(map[string][]string, len(m))
	for k, v := range m {
		h[k] = []string{v}
	}
	return Extract(ctx, h)
}
