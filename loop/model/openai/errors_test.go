package openai

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

func isKind(err error, k model.Kind) bool {
	var e *model.Error
	return errors.As(err, &e) && e.Kind == k
}

func TestErrors(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		status int
		body   string
		header map[string]string
		want   model.Kind
		after  time.Duration
		says   string
	}{
		{"bad key", 401, `{"error":{"message":"Incorrect API key provided: ` + testKey + `","code":"invalid_api_key"}}`, nil, model.Auth, 0, "OPENAI_API_KEY"},
		{"forbidden", 403, `{}`, nil, model.Auth, 0, "OPENAI_API_KEY"},
		{"rate limit in seconds", 429, `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, map[string]string{"Retry-After": "2"}, model.RateLimited, 2 * time.Second, "slow down"},
		{"rate limit in milliseconds", 429, `{}`, map[string]string{"Retry-After-Ms": "1500", "Retry-After": "2"}, model.RateLimited, 1500 * time.Millisecond, "rate limit"},
		{"rate limit by date", 429, ``, map[string]string{"Date": "Mon, 02 Jan 2026 10:00:00 GMT", "Retry-After": "Mon, 02 Jan 2026 10:00:30 GMT"}, model.RateLimited, 30 * time.Second, "rate limit"},
		{"no quota", 429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, nil, model.Auth, 0, "quota"},
		{"server error", 500, `{"error":{"message":"oops"}}`, nil, model.Unavailable, 0, "oops"},
		{"gateway page", 502, `<html>Bad Gateway</html>`, nil, model.Unavailable, 0, "trouble"},
		{"overloaded", 503, `overloaded`, map[string]string{"Retry-After": "1"}, model.Unavailable, time.Second, "overloaded"},
		{"context overflow", 400, `{"error":{"message":"too long","code":"context_length_exceeded"}}`, nil, model.Overflow, 0, "larger"},
		{"context overflow of a compatible endpoint", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens","code":400}`, nil, model.Overflow, 0, "4096"},
		{"request too large", 413, ``, nil, model.Overflow, 0, "larger"},
		{"content policy", 400, `{"error":{"message":"no","code":"content_policy_violation"}}`, nil, model.Refused, 0, "refused the content"},
		{"unknown model", 404, `{"error":"model 'm-1' not found"}`, nil, model.BadRequest, 0, "check the model's name"},
		{"bad request", 400, `{"error":{"message":"bad temperature"}}`, nil, model.BadRequest, 0, "bad temperature"},
		{"detail", 422, `{"detail":"field required"}`, nil, model.BadRequest, 0, "field required"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			header := map[string]string{"Content-Type": "application/json"}
			for k, v := range c.header {
				header[k] = v
			}
			for _, stream := range []bool{false, true} {
				_, err := ask(t, &endpoint{status: c.status, header: header, body: []byte(c.body)}, stream, model.Request{})
				var e *model.Error
				if !errors.As(err, &e) {
					t.Fatalf("got %v, want a *model.Error", err)
				}
				if e.Kind != c.want || e.Status != c.status || e.RetryAfter != c.after || !strings.Contains(e.Message, c.says) {
					t.Errorf("got %+v", e)
				}
				if strings.Contains(err.Error(), testKey) {
					t.Errorf("the error holds the key: %v", err)
				}
			}
		})
	}
}

func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	html := &endpoint{header: map[string]string{"Content-Type": "text/html"}, body: []byte("<html>")}
	short := &endpoint{header: map[string]string{"Content-Type": "application/json", "Content-Length": "100"}, body: []byte("{")}
	cases := []struct {
		name   string
		e      *endpoint
		stream bool
		want   model.Kind
	}{
		{"stream cut after a delta", streamAnswer(sse("", `{"content":"hi"}`)), true, model.Unavailable},
		{"A07 stream cut within a call", streamAnswer(sse("", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"a\""}}]}`)), true, model.Unavailable},
		{"empty stream", streamAnswer(""), true, model.Unavailable},
		{"chunk that is not JSON", streamAnswer("data: {oops\n\n"), true, model.Unavailable},
		{"overflow in the stream", streamAnswer(`data: {"error":{"message":"x","code":"context_length_exceeded"}}` + "\n\n"), true, model.Overflow},
		{"rate limit in the stream", streamAnswer(`data: {"error":{"message":"x","code":429}}` + "\n\n"), true, model.RateLimited},
		{"trouble in the stream", streamAnswer(sse("", `{"content":"hi"}`) + `data: {"error":{"message":"x","type":"server_error"}}` + "\n\n"), true, model.Unavailable},
		{"provider gives up", streamAnswer(sse("error", `{"content":"hi"}`)), true, model.Unavailable},
		{"connection cut", short, false, model.Unavailable},
		{"not JSON", jsonAnswer("{"), false, model.Unavailable},
		{"no choices", jsonAnswer(`{"choices":[]}`), false, model.Unavailable},
		{"error with status 200", jsonAnswer(`{"error":{"message":"prompt is too long"}}`), false, model.Overflow},
		{"a web page", html, false, model.BadRequest},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := ask(t, c.e, c.stream, model.Request{})
			if !isKind(err, c.want) {
				t.Errorf("got %+v, %v; want %s", got, err, c.want)
			}
		})
	}
}

func TestConnectionRefused(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	c, err := New(Config{Model: "m", APIKey: testKey, BaseURL: "http://user:secret@" + addr + "/v1", HTTPClient: &http.Client{Transport: &http.Transport{}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Generate(context.Background(), &model.Request{})
	if !isKind(err, model.Unavailable) || !strings.Contains(err.Error(), addr) || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		ctx, cancel := context.WithCancel(context.Background())
		c := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client has gone
			if stream {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write([]byte(sse("", `{"content":"hi"}`)))
				_ = http.NewResponseController(w).Flush()
			} else {
				cancel()
			}
			<-r.Context().Done()
		}))
		req := &model.Request{Messages: []schema.Message{{Role: "user", Text: "x"}}}
		if stream {
			req.Delta = func(model.Delta) { cancel() }
		}
		if _, err := c.Generate(ctx, req); !errors.Is(err, context.Canceled) {
			t.Errorf("stream %v: %v", stream, err)
		}
		cancel()
	}
}

func TestNoRetryInTheSDK(t *testing.T) {
	t.Parallel()
	n := 0
	c := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.WriteHeader(503)
	}))
	if _, err := c.Generate(context.Background(), &model.Request{}); !isKind(err, model.Unavailable) || n != 1 {
		t.Errorf("%d requests, %v", n, err)
	}
}
