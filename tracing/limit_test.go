package tracing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

func TestE05HugeSpanCostsNoOther(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, 4<<20)
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(r.URL+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	p := newPipeline(context.Background(), Config{}.withDefaults(), exporter)
	tracer := p.provider.Tracer("test")

	_, huge := tracer.Start(context.Background(), "huge "+strings.Repeat("n", 1<<20))
	huge.SetAttributes(attribute.String("output", strings.Repeat("é", 20<<20)), attribute.String("bytes", "\xff\xfeabc"))
	huge.AddEvent("event", trace.WithAttributes(attribute.String("text", strings.Repeat("x", 2<<20))))
	End(huge, errors.New(strings.Repeat("y", 5<<20)))
	const others = 400
	for i := range others { // 12 KiB each: together more than the collector takes at once
		_, s := tracer.Start(context.Background(), fmt.Sprintf("small %d", i))
		for a := range 3 {
			s.SetAttributes(attribute.String(fmt.Sprint("a", a), strings.Repeat("z", maxValue)))
		}
		s.End()
	}
	if err := p.shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}

	if r.refused != 0 || len(r.spans) != others+1 {
		t.Fatalf("collector has %d spans and refused %d requests, want %d and 0", len(r.spans), r.refused, others+1)
	}
	var got string
	for name, s := range r.spans {
		if !strings.HasPrefix(name, "huge") {
			continue
		}
		if len(name) > maxValue || len(s.Status.Message) > maxValue {
			t.Errorf("name of %d and status of %d bytes", len(name), len(s.Status.Message))
		}
		for _, kv := range s.Attributes {
			if kv.Key == string(AttrCut) {
				got = kv.Value.String()
			}
		}
	}
	for _, want := range []string{"name=1048581", "status=5242880", "output=41943040", "bytes=5", "event text=2097152"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %q: %s", AttrCut, want, got)
		}
	}
}

func TestE05CutsOnlyWhatIsTooLong(t *testing.T) {
	t.Parallel()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(
		&limiter{SpanProcessor: sdktrace.NewSimpleSpanProcessor(exporter), value: 10}))
	_, s := provider.Tracer("t").Start(context.Background(), "s", trace.WithLinks(trace.Link{
		SpanContext: trace.SpanContextFromContext(sampledContext(t, "", "")),
		Attributes:  []attribute.KeyValue{attribute.String("l", "0123456789abc")},
	}))
	s.SetAttributes(
		attribute.String("short", "0123456789"), attribute.String("long", "012345678€"), attribute.Int("n", 7),
		attribute.StringSlice("list", []string{"ok", "0123456789abc"}), attribute.ByteSlice("raw", []byte("0123456789abcdef")),
		attribute.Slice("small", attribute.IntValue(1)),
	)
	s.End()
	_, plain := provider.Tracer("t").Start(context.Background(), "plain")
	plain.End()

	got := exporter.GetSpans()
	want := map[string]string{"short": "0123456789", "long": "012345678", "n": "7", "list": `["ok","0123456789"]`, "small": "[1]"}
	have := values(got[0].Attributes)
	for k, v := range want {
		if have[k] != v {
			t.Errorf("%s = %q, want %q", k, have[k], v)
		}
	}
	if len(have["raw"]) > 10 || !strings.Contains(have[string(AttrCut)], "link l=13") || values(got[0].Links[0].Attributes)["l"] != "0123456789" {
		t.Errorf("raw, cut or link not as wanted: %v, %v", have, got[0].Links)
	}
	if len(got[1].Attributes) != 0 {
		t.Errorf("a span without long texts got attributes: %v", got[1].Attributes)
	}
}

func TestE05OneSpanHasABound(t *testing.T) {
	t.Parallel()
	c := cutter{value: maxValue, left: maxSpan}
	total := 0
	for i := range 500 {
		total += len(c.text(fmt.Sprint(i), strings.Repeat("x", maxValue)))
	}
	if total > maxSpan {
		t.Errorf("texts of one span: %d bytes, want at most %d", total, maxSpan)
	}
}

func FuzzCut(f *testing.F) {
	f.Add("a€b", 2)
	f.Add("\xff\xfe\xfd", 2)
	f.Add("🙂", 3)
	f.Fuzz(func(t *testing.T, s string, max int) {
		if max < 0 {
			return
		}
		got := cut(s, max)
		if len(got) > max || !utf8.ValidString(got) {
			t.Errorf("cut(%q, %d) = %q", s, max, got)
		}
		if utf8.ValidString(s) && !strings.HasPrefix(s, got) {
			t.Errorf("cut(%q, %d) = %q, not its beginning", s, max, got)
		}
	})
}
