package tracing

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver is a collector: OTLP over HTTP on 127.0.0.1, which refuses bodies above limit bytes for good.
type receiver struct {
	*httptest.Server
	limit int

	mu      sync.Mutex
	spans   map[string]*tracepb.Span // by name; names of tests are distinct
	service []string                 // resource attributes of the first request, as key=value
	refused int
}

func newReceiver(t *testing.T, limit int) *receiver {
	t.Helper()
	r := &receiver{limit: limit, spans: map[string]*tracepb.Span{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	var msg coltrace.ExportTraceServiceRequest
	if err != nil || len(body) > r.limit || proto.Unmarshal(body, &msg) != nil {
		r.refused++
		http.Error(w, "refused", http.StatusRequestEntityTooLarge)
		return
	}
	for _, rs := range msg.ResourceSpans {
		if r.service == nil {
			for _, kv := range rs.Resource.Attributes {
				r.service = append(r.service, kv.Key+"="+kv.Value.GetStringValue())
			}
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				r.spans[s.Name] = s
			}
		}
	}
}

// silent is an address that takes connections and never answers; down is one that refuses them.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return "http://" + l.Addr().String()
}

func down(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}
