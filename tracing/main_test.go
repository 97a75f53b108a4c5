package tracing

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
)

// envChild makes the test binary a process that traces one run and flushes at SIGTERM; its value is the flush bound.
const envChild = "JETCREW_TEST_TRACING_CHILD"

// recorded holds the spans of all tests; each test looks at its own traces.
var recorded = tracetest.NewInMemoryExporter()

func TestMain(m *testing.M) {
	if bound := os.Getenv(envChild); bound != "" {
		os.Exit(child(bound))
	}
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(recorded), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample()))))
	goleak.VerifyTestMain(m)
}

// child is a short-lived process as cmd/* are: work, SIGTERM, flush under the cancelled context.
func child(bound string) int {
	flush, err := time.ParseDuration(bound)
	if err != nil {
		return 3
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	shutdown, err := Setup(ctx, Config{Service: "child", Instance: "i-1", Flush: flush})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	run, root := StartAgent(ctx, Agent{ID: "reviewer", Run: "r-1"})
	_, tool := StartTool(run, Tool{Name: "bash", Run: "r-1", Turn: 1})
	End(tool, nil)
	End(root, nil)
	fmt.Println("ready")
	<-ctx.Done()
	if err := shutdown(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// spansOf returns the ended spans of one trace.
func spansOf(id trace.TraceID) tracetest.SpanStubs {
	var own tracetest.SpanStubs
	for _, s := range recorded.GetSpans() {
		if s.SpanContext.TraceID() == id {
			own = append(own, s)
		}
	}
	return own
}

// named returns the only span of that name.
func named(t *testing.T, spans tracetest.SpanStubs, name string) tracetest.SpanStub {
	t.Helper()
	var found []tracetest.SpanStub
	for _, s := range spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans named %q, want 1; have %v", len(found), name, names(spans))
	}
	return found[0]
}

func names(spans tracetest.SpanStubs) []string {
	var list []string
	for _, s := range spans {
		list = append(list, s.Name)
	}
	return list
}

// values turns attributes into a map of their texts.
func values(attrs []attribute.KeyValue) map[string]string {
	m := make(map[string]string, len(attrs))
	for _, kv := range attrs {
		m[string(kv.Key)] = kv.Value.String()
	}
	return m
}
