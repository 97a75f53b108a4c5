package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/trace"

	"github.com/jetcrew/jetcrew/executor/mcp"
	"github.com/jetcrew/jetcrew/schema"
)

func TestCalls(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, cfg mcp.Config) {
		c := connect(t, cfg)
		c.want("shop_echo", `{"n":12345678901234567890.10}`, `{"n":12345678901234567890.10}`)
		if r := c.do(t.Context(), "shop_fail", `{}`); r.OK || r.Error.Type != schema.ToolFailed || r.Error.Message != "no such order" {
			t.Errorf("fail: %+v", r)
		}
		if r := c.do(t.Context(), "shop_echo", `{"n":"x"}`); r.OK || r.Error.Type != schema.InvalidArguments {
			t.Errorf("invalid arguments: %+v", r)
		}
		c.want("shop_管理/删除", `{}`, "管理/删除")
	})
}

// TestA17Names: each tool of a server keeps a name of its own, and the call goes to the tool that the name says.
func TestA17Names(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, cfg mcp.Config) {
		c := connect(t, cfg)
		for _, name := range []string{"notion.search", "notion_search", "管理/删除", strings.Repeat("n", 90)} {
			d, ok := c.defs()["shop_"+name]
			if !ok || d.Source != "shop" || d.Queue != "mcp-shop" {
				t.Errorf("%s: %+v", name, d)
			}
			c.want("shop_"+name, `{}`, name)
		}
		if _, ok := c.defs()["shop_"+strings.Repeat("x", 300)]; ok {
			t.Error("a tool whose name is too long is there")
		}
		cfg.Prefix = "p-"
		connect(t, cfg).want("p-notion.search", `{}`, "notion.search")
		cfg.Prefix, cfg.Bare = "", true
		connect(t, cfg).want("notion.search", `{}`, "notion.search")
	})
}

// TestDescriptions: a tool without one has its title or its name.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	defs := connect(t, overHTTP(t, nil)).defs()
	for name, want := range map[string]string{"shop_echo": "returns its arguments", "shop_meta": "What stands beside the arguments", "shop_fail": "fail"} {
		if got := defs[name].Description; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestEffects: hints count only when the server is trusted, and a declaration always.
func TestEffects(t *testing.T) {
	t.Parallel()
	cfg := overHTTP(t, nil)
	type claim struct {
		effect     string
		idempotent bool
	}
	for name, tt := range map[string]struct {
		change func(*mcp.Config)
		want   map[string]claim
	}{
		"untrusted": {func(*mcp.Config) {}, map[string]claim{"reads": {}, "adds": {}, "posts": {}, "wipes": {}, "echo": {}}},
		"trusted": {func(c *mcp.Config) { c.Trust = true }, map[string]claim{
			"reads": {schema.EffectRead, true}, "adds": {schema.EffectWrite, false}, "posts": {schema.EffectNetwork, true}, "wipes": {schema.EffectDestructive, false}, "echo": {},
		}},
		"declared": {func(c *mcp.Config) {
			c.Trust = true
			c.Declare = map[string]mcp.Declaration{"reads": {}, "wipes": {Effect: schema.EffectRead, Idempotent: true}}
		}, map[string]claim{"reads": {}, "wipes": {schema.EffectRead, true}, "adds": {schema.EffectWrite, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := cfg
			tt.change(&cfg)
			defs := connect(t, cfg).defs()
			for tool, want := range tt.want {
				if d := defs["shop_"+tool]; d.Name == "" || (claim{d.Effect, d.Idempotent}) != want {
					t.Errorf("%s: %+v, want %+v", tool, d, want)
				}
			}
		})
	}
}

// TestMeta: the idempotency key, the bound values and the trace context go beside the arguments.
func TestMeta(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, cfg mcp.Config) {
		c := connect(t, cfg)
		ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
		}))
		var got map[string]any
		if r := c.do(ctx, "shop_meta", `{}`); json.Unmarshal([]byte(r.Output), &got) != nil {
			t.Fatalf("meta: %+v", r)
		}
		bound, _ := got[mcp.MetaBound].(map[string]any)
		if got[mcp.MetaKey] != "run-1/2.3" || bound["tenant"] != "acme" || got["traceparent"] != "00-01000000000000000000000000000000-0200000000000000-01" {
			t.Errorf("meta: %v", got)
		}
	})
}

// TestD33SessionOutlivesConnect: a session does not end with the context in which it was begun, and a call that is
// cancelled tells the server.
func TestD33SessionOutlivesConnect(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	c := connect(t, overHTTP(t, ended)) // whose context is over
	c.want("shop_echo", `{"n":1}`, `{"n":1}`)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if r := c.do(ctx, "shop_hang", `{}`); r.OK || r.Error.Type != schema.Timeout {
		t.Errorf("hang: %+v", r)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the server's call ended with %v", err)
	}
	c.want("shop_echo", `{"n":2}`, `{"n":2}`)
}

// TestD33CloseWhileCallsArePending: Close returns, and so do the calls.
func TestD33CloseWhileCallsArePending(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, cfg mcp.Config) {
		c := connect(t, cfg)
		var calls sync.WaitGroup
		results := make(chan schema.Result, 4)
		for range cap(results) {
			calls.Go(func() { results <- c.do(t.Context(), "shop_hang", `{}`) })
		}
		c.want("shop_echo", `{"n":1}`, `{"n":1}`)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		calls.Wait()
		close(results)
		for r := range results {
			if r.OK || r.Error == nil || r.Error.Type != schema.OutcomeUnknown && !strings.Contains(r.Error.Message, "was not sent") {
				t.Errorf("pending call: %+v", r)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := c.Tools(t.Context()); !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("tools after close: %v", err)
		}
	})
}

// TestToolsChange: a change is announced, and read.
func TestToolsChange(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, cfg mcp.Config) {
		c := connect(t, cfg)
		old := c.set
		c.want("shop_grow", `{}`, "ok")
		<-c.Changed()
		for c.read(); c.defs()["shop_grown"].Name == ""; c.read() {
			<-c.Changed() // two changes, two notices
		}
		c.want("shop_grown", `{}`, "new")
		c.set = old
		if r := c.do(t.Context(), "shop_fail", `{}`); r.OK || r.Error.Type != schema.ToolFailed || !strings.Contains(r.Error.Message, "refused the call") {
			t.Errorf("call of a tool that is gone: %+v", r)
		}
	})
}

// TestD15NoSecondTry: a call is posted once, whatever becomes of it.
func TestD15NoSecondTry(t *testing.T) {
	t.Parallel()
	mcpServer := newServer(nil, nil)
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return mcpServer }, nil)
	var posts atomic.Int64
	var breakIt atomic.Pointer[func(http.ResponseWriter)]
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if how := breakIt.Load(); how != nil && r.Method == http.MethodPost {
			posts.Add(1)
			(*how)(w)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	for name, how := range map[string]func(http.ResponseWriter){
		"connection cut": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"unavailable":    func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"redirect": func(w http.ResponseWriter) {
			w.Header().Set("Location", h.URL)
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"stream cut": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(": hello\n\n"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		breakIt.Store(nil)
		c := connect(t, mcp.Config{Name: "shop", URL: h.URL})
		posts.Store(0)
		breakIt.Store(&how)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if r := c.do(ctx, "shop_echo", `{"n":1}`); r.OK || r.Error == nil || r.Error.Type != schema.OutcomeUnknown {
			t.Errorf("%s: %+v", name, r)
		}
		cancel()
		breakIt.Store(nil)
		if n := posts.Load(); n != 1 {
			t.Errorf("%s: posted %d times", name, n)
		}
		c.want("shop_echo", `{"n":2}`, `{"n":2}`) // on a new session
	}
}

// TestHeadersOfHTTP: they go with each request.
func TestHeadersOfHTTP(t *testing.T) {
	t.Parallel()
	mcpServer := newServer(nil, nil)
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return mcpServer }, nil)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	cfg := mcp.Config{Name: "shop", URL: h.URL, Header: map[string]string{"Authorization": "Bearer t"}}
	connect(t, cfg).want("shop_echo", `{"n":1}`, `{"n":1}`)
	cfg.Header = nil
	if _, err := mcp.Connect(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), `MCP server "shop"`) {
		t.Errorf("without the header: %v", err)
	}
}
