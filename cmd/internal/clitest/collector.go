package clitest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span that a Collector received.
type Span struct {
	Service, Name     string
	Trace, ID, Parent string // raw bytes
}

// Collector receives spans, OTLP over HTTP on 127.0.0.1.
type Collector struct {
	server *httptest.Server

	mu    sync.Mutex
	spans []Span
}

// NewCollector starts a collector that ends with the test.
func NewCollector(t testing.TB) *Collector {
	c := &Collector{}
	c.server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.server.Close)
	return c
}

// Env returns the variables that make a program export to the collector.
func (c *Collector) Env() []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.server.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"}
}

// Spans returns what has been received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

func (c *Collector) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var msg coltrace.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(body, &msg) != nil {
		http.Error(w, "not OTLP", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range msg.ResourceSpans {
		service := ""
		for _, kv := range rs.Resource.Attributes {
			if kv.Key == "service.name" {
				service = kv.Value.GetStringValue()
			}
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				c.spans = append(c.spans, Span{
					Service: service, Name: s.Name, Trace: string(s.TraceId), ID: string(s.SpanId), Parent: string(s.ParentSpanId),
				})
			}
		}
	}
}
