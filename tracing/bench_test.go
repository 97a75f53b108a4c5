package tracing

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

type ctxKey int

// unsampledContext is as deep as that of a call.
func unsampledContext() context.Context {
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), ctxKey(1), 1))
	cancel()
	return context.WithValue(ctx, ctxKey(2), 2)
}

// hot is what every call passes through.
func hot(ctx context.Context) map[string]func() {
	m, d := workMessage, Delivery{Message: workMessage, Number: 1}
	headers := map[string][]string{"Jc-Deadline": {"1767225600000"}, "Nats-TTL": {"360"}}
	end := func(_ context.Context, span trace.Span) { End(span, nil) }
	return map[string]func(){
		"turn":    func() { end(StartTurn(ctx, "r", 1)) },
		"chat":    func() { end(StartChat(ctx, Chat{Model: "m"})) },
		"tool":    func() { end(StartTool(ctx, Tool{Name: "bash"})) },
		"publish": func() { end(StartPublish(ctx, m)) },
		"process": func() { end(StartProcess(ctx, d)) },
		"inject":  func() { Inject(ctx, headers) },
		"extract": func() { Extract(ctx, headers) },
	}
}

func TestUnsampledAllocatesNothing(t *testing.T) {
	for name, f := range hot(unsampledContext()) {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

func BenchmarkUnsampled(b *testing.B) {
	for name, f := range hot(unsampledContext()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}

func BenchmarkSampledInjectExtract(b *testing.B) {
	ctx := sampledContext(b, "", "")
	b.ReportAllocs()
	for b.Loop() {
		h := make(map[string][]string, 2)
		Inject(ctx, h)
		Extract(context.Background(), h)
	}
}
