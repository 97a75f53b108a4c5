package anthropic

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

const testKey = "sk-ant-test-secret-0123456789"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// endpoint is a server that speaks the protocol: it keeps the last request and gives a fixed answer.
type endpoint struct {
	status int
	header map[string]string
	body   []byte
	path   string
	key    string
	bearer string
	got    map[string]any
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	e.path, e.key, e.got = r.URL.Path, r.Header.Get("X-Api-Key"), map[string]any{}
	_ = json.Unmarshal(data, &e.got)
	e.bearer = r.Header.Get("Authorization")
	for k, v := range e.header {
		w.Header().Set(k, v)
	}
	if e.status != 0 {
		w.WriteHeader(e.status)
	}
	_, _ = w.Write(e.body)
}

func jsonAnswer(body string) *endpoint {
	return &endpoint{header: map[string]string{"Content-Type": "application/json"}, body: []byte(body)}
}

func streamAnswer(body string) *endpoint {
	return &endpoint{header: map[string]string{"Content-Type": "text/event-stream"}, body: []byte(body)}
}

func start(t *testing.T, h http.Handler) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	hc := srv.Client()
	t.Cleanup(hc.CloseIdleConnections)
	c, err := New(Config{Model: "m-1", APIKey: testKey, BaseURL: srv.URL, HTTPClient: hc})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ask sends a request, streamed or not.
func ask(t *testing.T, e *endpoint, stream bool, req model.Request) (*model.Response, error) {
	t.Helper()
	c := start(t, e)
	if stream && req.Delta == nil {
		req.Delta = func(model.Delta) {}
	}
	if req.Messages == nil {
		req.Messages = []schema.Message{{Role: schema.RoleUser, Text: "go"}}
	}
	return c.Generate(context.Background(), &req)
}

func testdata(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
