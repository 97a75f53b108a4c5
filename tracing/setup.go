package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// defaultFlush bounds the flush at the end of a process.
const defaultFlush = 5 * time.Second

// Config says who this process is. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over it.
type Config struct {
	Service  string        // service.name; default "jetcrew"
	Version  string        // service.version; empty: not said
	Instance string        // service.instance.id, one start of one process; empty: not said
	Flush    time.Duration // bound of the flush at the end; default 5 s
	Logger   *slog.Logger  // gets trouble with the export, at most once a minute; default slog.Default()
}

func (c Config) withDefaults() Config {
	if c.Service == "" {
		c.Service = "jetcrew"
	}
	if c.Flush <= 0 {
		c.Flush = defaultFlush
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Setup sets up the export of spans for this process as the standard variables say: OTEL_SDK_DISABLED,
// OTEL_TRACES_EXPORTER (otlp, console, none), OTEL_EXPORTER_OTLP_* (with _PROTOCOL grpc or http/protobuf, the default),
// OTEL_TRACES_SAMPLER and _ARG, OTEL_BSP_*, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES. Without an endpoint or an
// exporter named, it sets nothing up, and no span is recorded.
//
// Call it once per process, and the returned function at the process's end, when all work has settled; also after an
// error nothing needs to be cleaned up. shutdown sends what is left within Config.Flush, even when its context is
// cancelled already, and returns an error if that time was not enough; what a collector refuses is logged. It may be
// called twice.
func Setup(ctx context.Context, cfg Config) (shutdown func(context.Context) error, err error) {
	cfg = cfg.withDefaults()
	none := func(context.Context) error { return nil }
	kind, err := exporterFromEnv(os.Getenv)
	if err != nil || kind == exportNone {
		return none, err
	}
	exporter, err := newExporter(ctx, kind)
	if err != nil {
		return none, fmt.Errorf("tracing: exporter %s: %w", kind, err)
	}
	otel.SetErrorHandler(&errorLog{logger: cfg.Logger, every: time.Minute})
	p := newPipeline(ctx, cfg, exporter)
	otel.SetTracerProvider(p.provider)
	return p.shutdown, nil
}

// pipeline is a provider and what it takes to end it.
type pipeline struct {
	provider *sdktrace.TracerProvider
	flush    time.Duration
	giveUp   context.CancelFunc // ends exports under way
	once     sync.Once
	err      error
}

func newPipeline(ctx context.Context, cfg Config, exporter sdktrace.SpanExporter) *pipeline {
	life, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	limits := sdktrace.NewSpanLimits()
	value := maxValue
	if limits.AttributeValueLengthLimit > 0 {
		value = limits.AttributeValueLengthLimit
	}
	limits.AttributeValueLengthLimit = -1 // limiter cuts, and says how much
	batch := sdktrace.NewBatchSpanProcessor(&boundedExporter{SpanExporter: exporter, life: life})
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(newResource(ctx, cfg)),
		sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithSpanProcessor(&limiter{SpanProcessor: batch, value: value}),
	)
	return &pipeline{provider: provider, flush: cfg.Flush, giveUp: giveUp}
}

// shutdown flushes under a bound of its own: at the end of a process the caller's context is usually cancelled, and a
// flush under it would send nothing.
func (p *pipeline) shutdown(ctx context.Context) error {
	p.once.Do(func() {
		defer p.giveUp()
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.flush)
		defer cancel()
		if err := p.provider.Shutdown(own); err != nil {
			p.err = fmt.Errorf("tracing: flush within %s: %w", p.flush, err)
		}
	})
	return p.err
}

// newResource describes this process. A malformed OTEL_RESOURCE_ATTRIBUTES is reported and costs only itself.
func newResource(ctx context.Context, cfg Config) *resource.Resource {
	attrs := []resource.Option{resource.WithAttributes(semconv.ServiceName(cfg.Service))}
	if cfg.Version != "" {
		attrs = append(attrs, resource.WithAttributes(semconv.ServiceVersion(cfg.Version)))
	}
	if cfg.Instance != "" {
		attrs = append(attrs, resource.WithAttributes(semconv.ServiceInstanceID(cfg.Instance)))
	}
	attrs = append(attrs, resource.WithTelemetrySDK(), resource.WithFromEnv())
	res, err := resource.New(ctx, attrs...)
	if err != nil && !errors.Is(err, resource.ErrSchemaURLConflict) {
		otel.Handle(fmt.Errorf("resource attributes: %w", err))
	}
	return res
}

// errorLog logs the SDK's troubles, at most one in every so long: a collector that is down fails each batch.
type errorLog struct {
	logger *slog.Logger
	every  time.Duration

	mu         sync.Mutex
	last       time.Time
	suppressed int
}

// Handle logs err, or counts it.
func (l *errorLog) Handle(err error) {
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.last) >= l.every {
		l.logger.Warn("trace export", "error", err, "suppressed", l.suppressed)
		l.last, l.suppressed = now, 0
		return
	}
	l.suppressed++
}
