package loop_test

import (
	"context"
	"encoding/binary"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/schema"
)

// recorder is a tracer that samples everything and keeps each span's name with the names above it. It stands in for
// the SDK, which only package tracing may know.
type recorder struct {
	embedded.TracerProvider
	mu    sync.Mutex
	paths map[trace.SpanID]string
	ended []string
}

type tracer struct {
	embedded.Tracer
	*recorder
}

type recordedSpan struct {
	noop.Span
	rec *recorder
	ctx trace.SpanContext
	one sync.Once
}

func (r *recorder) Tracer(string, ...trace.TracerOption) trace.Tracer {
	return tracer{recorder: r}
}

func (r tracer) Start(ctx context.Context, name string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	parent := trace.SpanContextFromContext(ctx)
	cfg := trace.SpanContextConfig{TraceID: parent.TraceID(), TraceFlags: trace.FlagsSampled}
	binary.BigEndian.PutUint64(cfg.SpanID[:], uint64(len(r.paths)+1))
	if !parent.IsValid() {
		copy(cfg.TraceID[:], cfg.SpanID[:])
	}
	s := &recordedSpan{rec: r.recorder, ctx: trace.NewSpanContext(cfg)}
	r.paths[cfg.SpanID] = strings.TrimPrefix(r.paths[parent.SpanID()]+" > "+name, " > ")
	return trace.ContextWithSpan(ctx, s), s
}

func (s *recordedSpan) SpanContext() trace.SpanContext { return s.ctx }

func (s *recordedSpan) End(...trace.SpanEndOption) {
	s.one.Do(func() {
		s.rec.mu.Lock()
		defer s.rec.mu.Unlock()
		s.rec.ended = append(s.rec.ended, s.rec.paths[s.ctx.SpanID()])
	})
}

// record records the spans of a test, which does not run in parallel: the tracer provider is the process's.
func record(t *testing.T) *recorder {
	rec := &recorder{paths: make(map[trace.SpanID]string)}
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(rec)
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	return rec
}

func TestE01SpansOfACompaction(t *testing.T) {
	rec := record(t)
	r := compacting(schema.Compaction{Strategy: schema.CompactSummary, MaxTurns: 2}, counted(1), counted(2), looptest.Text("so far"), looptest.Text("done"))
	r.run(t)
	want := []string{
		"invoke_agent tester > turn > compact > chat",
		"invoke_agent tester > turn > compact",
		"invoke_agent tester > turn > chat",
		"invoke_agent tester > turn",
		"invoke_agent tester",
	}
	if diff := cmp.Diff(want, rec.ended[len(rec.ended)-len(want):]); diff != "" {
		t.Error(diff)
	}
}

func TestE01SpansOfARun(t *testing.T) {
	rec := record(t)
	var inTool trace.SpanContext
	r := newRig(calls("look", "nobody"), looptest.Text("done"))
	r.tool("look", func(ctx context.Context, _ *schema.Call) (string, error) {
		inTool = trace.SpanContextFromContext(ctx)
		return "", nil
	})
	_, run := r.run(t)
	want := []string{
		"invoke_agent tester > turn > chat",
		"invoke_agent tester > turn > execute_tool look",
		"invoke_agent tester > turn > execute_tool other",
		"invoke_agent tester > turn",
		"invoke_agent tester > turn > chat",
		"invoke_agent tester > turn",
		"invoke_agent tester",
	}
	if diff := cmp.Diff(want, rec.ended); diff != "" {
		t.Error(diff)
	}
	if parent := run.State().Open().Trace["traceparent"]; !strings.Contains(parent, inTool.TraceID().String()) {
		t.Errorf("open holds %q, the tool ran in trace %s", parent, inTool.TraceID())
	}
	if got := rec.paths[inTool.SpanID()]; got != want[1] {
		t.Errorf("the tool ran under %q", got)
	}
}
