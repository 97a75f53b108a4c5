package main

import (
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/jetcrew/jetcrew/cmd/internal/clitest"
	"github.com/jetcrew/jetcrew/schema"
)

// sampled is a trace that somebody samples.
var sampled = trace.NewSpanContext(trace.SpanContextConfig{
	TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4, 5, 6}, TraceFlags: trace.FlagsSampled, Remote: true,
})

func TestE04SpansArriveAfterTerm(t *testing.T) {
	t.Parallel()
	collector := clitest.NewCollector(t)
	srv, b := connect(t)
	w := startWorker(t, srv, collector.Env(), "serve", "--queue", "files")
	list := tool(t, b, "list_files")
	ctx := trace.ContextWithRemoteSpanContext(t.Context(), sampled)
	if r, err := b.Invoke(ctx, list, "{}", schema.Principal{}, time.Minute); err != nil || !r.OK {
		t.Fatalf("%+v, %v", r, err)
	}
	w.Signal(syscall.SIGTERM)
	if r := w.Wait(); r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	id := sampled.TraceID()
	spans := collector.Spans()
	if !slices.ContainsFunc(spans, func(s clitest.Span) bool {
		return s.Trace == string(id[:]) && s.Service == "jetcrew-toolworker"
	}) {
		t.Errorf("spans %+v, want one of the trace", spans)
	}
}

func TestE04CollectorThatIsSilentDelaysTheExitWithinTheLimit(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	srv, b := connect(t)
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + silent.Addr().String(), "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"}
	w := startWorker(t, srv, env, "serve", "--queue", "files")
	list := tool(t, b, "list_files")
	ctx := trace.ContextWithRemoteSpanContext(t.Context(), sampled)
	if r, err := b.Invoke(ctx, list, "{}", schema.Principal{}, time.Minute); err != nil || !r.OK {
		t.Fatalf("%+v, %v", r, err)
	}
	start := time.Now()
	w.Signal(syscall.SIGTERM)
	r := w.Wait()
	if took := time.Since(start); r.Code != 0 || took > 15*time.Second { // 5 s for the flush, the rest for a busy machine
		t.Errorf("exit after %v: %+v", took, r)
	}
}
