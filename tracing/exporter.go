package tracing

import (
	"context"
	"fmt"
	"os"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The standard variables that are read here; the SDK reads the others.
// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
const (
	envDisabled       = "OTEL_SDK_DISABLED"
	envExporter       = "OTEL_TRACES_EXPORTER"
	envEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
)

// exporterKind is where spans go.
type exporterKind string

const (
	exportNone    exporterKind = "none"
	exportConsole exporterKind = "console"
	exportHTTP    exporterKind = "http/protobuf"
	exportGRPC    exporterKind = "grpc"
)

// exporterFromEnv decides where spans go. Unlike the specification, no variable at all means nowhere: a run on a laptop
// shall not look for a collector.
func exporterFromEnv(getenv func(string) string) (exporterKind, error) {
	get := func(key string) string { return strings.ToLower(strings.TrimSpace(getenv(key))) }
	if get(envDisabled) == "true" {
		return exportNone, nil
	}
	switch name := get(envExporter); name {
	case "none":
		return exportNone, nil
	case "console":
		return exportConsole, nil
	case "otlp":
		return protocolFromEnv(get)
	case "":
		if get(envEndpoint) == "" && get(envTracesEndpoint) == "" {
			return exportNone, nil
		}
		return protocolFromEnv(get)
	default:
		return exportNone, fmt.Errorf("tracing: %s %q: want otlp, console or none", envExporter, name)
	}
}

func protocolFromEnv(get func(string) string) (exporterKind, error) {
	key := envTracesProtocol
	if get(key) == "" {
		key = envProtocol
	}
	switch p := get(key); exporterKind(p) {
	case "", exportHTTP:
		return exportHTTP, nil
	case exportGRPC:
		return exportGRPC, nil
	default:
		return exportNone, fmt.Errorf("tracing: %s %q: want grpc or http/protobuf", key, p)
	}
}

// newExporter does not connect yet. The console is standard error: standard output belongs to answers and events.
func newExporter(ctx context.Context, kind exporterKind) (sdktrace.SpanExporter, error) {
	switch kind {
	case exportConsole:
		return stdouttrace.New(stdouttrace.WithWriter(os.Stderr))
	case exportGRPC:
		return otlptracegrpc.New(ctx)
	default:
		return otlptracehttp.New(ctx)
	}
}
