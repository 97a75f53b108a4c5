// Package tracing sets OpenTelemetry up, carries trace context over the bus, and holds the names of all spans and
// attributes of Jetcrew.
//
// It owns the SDK (exporters, batching, size limits, the flush at exit), the propagation through message headers and
// facts, and helpers that start spans with the agreed names. It refuses to know NATS, runs or tools: it takes plain
// values. Every other package uses the OpenTelemetry API and the helpers of this one; the SDK is imported only here.
//
// A process sets tracing up once and flushes it at its end. Without any OTEL_* endpoint nothing is set up, and spans
// cost next to nothing:
//
//	shutdown, err := tracing.Setup(ctx, tracing.Config{Service: "jetcrew-orchestrator"})
//	if err != nil {
//		return err
//	}
//	defer shutdown(ctx)
//
//	ctx, span := tracing.StartAgent(ctx, tracing.Agent{ID: "reviewer", Run: run})
//	answer, err := work(ctx)
//	tracing.End(span, err)
package tracing
