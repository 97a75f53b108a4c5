package tracing

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"
)

const (
	parentText = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	stateText  = "vendor=abc"
	bagText    = "tenant=acme"
)

func sampledContext(t testing.TB, state, bag string) context.Context {
	t.Helper()
	ctx := Extract(context.Background(), map[string][]string{HeaderTraceparent: {parentText}})
	ts, err := trace.ParseTraceState(state)
	if err != nil {
		t.Fatal(err)
	}
	b, err := baggage.Parse(bag)
	if err != nil {
		t.Fatal(err)
	}
	sc := trace.SpanContextFromContext(ctx).WithTraceState(ts)
	return baggage.ContextWithBaggage(trace.ContextWithRemoteSpanContext(ctx, sc), b)
}

func TestE01InjectWritesLowerCaseHeaders(t *testing.T) {
	t.Parallel()
	h := map[string][]string{"Jc-Deadline": {"9"}, "Traceparent": {"stale"}}
	Inject(sampledContext(t, stateText, bagText), h)
	want := map[string][]string{
		"Jc-Deadline": {"9"}, "traceparent": {parentText}, "tracestate": {stateText}, "baggage": {bagText},
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func TestE01InjectLeavesOut(t *testing.T) {
	t.Parallel()
	sampled := sampledContext(t, stateText, bagText)
	unsampled := trace.ContextWithRemoteSpanContext(sampled, trace.SpanContextFromContext(sampled).WithTraceFlags(0))
	for name, tc := range map[string]struct {
		ctx  context.Context
		want []string
	}{
		"no trace":            {context.Background(), nil},
		"unsampled":           {unsampled, nil},
		"baggage above 1 KiB": {sampledContext(t, "", "k="+strings.Repeat("x", 1100)), []string{"traceparent"}},
		"tracestate above 512 bytes": {
			sampledContext(t, "a="+strings.Repeat("x", 255)+",b="+strings.Repeat("y", 255)+",c=z", ""),
			[]string{"traceparent"},
		},
	} {
		h := map[string][]string{}
		Inject(tc.ctx, h)
		if diff := cmp.Diff(tc.want, carrierKeys(h)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func carrierKeys(h map[string][]string) []string {
	if len(h) == 0 {
		return nil
	}
	return carrier(h).Keys()
}

func TestE01ExtractReadsAnyCase(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"traceparent", "Traceparent", "TRACEPARENT", "TraceParent"} {
		ctx := Extract(context.Background(), map[string][]string{
			name: {parentText}, "TraceState": {stateText, "other=1"}, "Baggage": {bagText},
		})
		h := map[string][]string{}
		Inject(ctx, h)
		want := map[string][]string{"traceparent": {parentText}, "tracestate": {stateText + ",other=1"}, "baggage": {bagText}}
		if diff := cmp.Diff(want, h); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestExtractStartsNoTrace(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]map[string][]string{
		"nil":                nil,
		"nothing":            {"Jc-Deadline": {"1"}},
		"baggage only":       {"baggage": {bagText}},
		"no value":           {"traceparent": {}},
		"two traceparents":   {"traceparent": {parentText, parentText}},
		"garbage":            {"traceparent": {"\x00\xff-💥"}},
		"zero ids":           {"traceparent": {"00-00000000000000000000000000000000-0000000000000000-01"}},
		"version ff":         {"traceparent": {"ff" + parentText[2:]}},
		"one megabyte of it": {"traceparent": {strings.Repeat(parentText, 20000)}},
	} {
		ctx := context.Background()
		if got := Extract(ctx, h); got != ctx {
			t.Errorf("%s: context changed", name)
		}
	}
}

func TestExtractDropsOversizedCompanions(t *testing.T) {
	t.Parallel()
	ctx := Extract(context.Background(), map[string][]string{
		"traceparent": {parentText},
		"tracestate":  {"a=" + strings.Repeat("x", 255) + ",b=" + strings.Repeat("y", 255) + ",c=z"},
		"baggage":     {"k=" + strings.Repeat("x", 2000)},
	})
	h := map[string][]string{}
	Inject(ctx, h)
	if diff := cmp.Diff(map[string][]string{"traceparent": {parentText}}, h); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func TestTraceMapRoundTrip(t *testing.T) {
	t.Parallel()
	ctx := sampledContext(t, stateText, bagText)
	m := TraceMap(ctx)
	want := map[string]string{"traceparent": parentText, "tracestate": stateText, "baggage": bagText}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("map (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(m, TraceMap(FromTraceMap(context.Background(), m))); diff != "" {
		t.Errorf("round trip (-want +got):\n%s", diff)
	}
	if m := TraceMap(context.Background()); m != nil {
		t.Errorf("map without a trace = %v, want nil", m)
	}
}

func FuzzExtract(f *testing.F) {
	f.Add("traceparent", parentText, stateText, bagText)
	f.Add("TraceParent", "00-", "=,=", "%zz;;,=")
	f.Fuzz(func(t *testing.T, key, parent, state, bag string) {
		ctx := Extract(context.Background(), map[string][]string{
			key: {parent}, "traceparent": {parent}, "Tracestate": {state, state}, "baggage": {bag},
		})
		h := map[string][]string{}
		Inject(ctx, h)
		if again := TraceMap(Extract(context.Background(), h)); len(again) > 0 && again[HeaderTraceparent] != h[HeaderTraceparent][0] {
			t.Errorf("traceparent %q became %q", h[HeaderTraceparent][0], again[HeaderTraceparent])
		}
		if n := len(carrier(h).Get(HeaderBaggage)); n > maxBaggage {
			t.Errorf("baggage of %d bytes was carried", n)
		}
	})
}
