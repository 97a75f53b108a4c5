package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/executor/mcp"
	"github.com/jetcrew/jetcrew/schema"
)

// asServer makes the test binary a server on its standard input and output.
const asServer = "JETCREW_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		fmt.Fprintln(os.Stderr, strings.Repeat("x", 200<<10)) // more than a pipe holds
		_ = newServer(nil, nil).Run(context.Background(), &sdk.StdioTransport{})
		return
	}
	goleak.VerifyTestMain(m)
}

// object is the schema of any object.
var object = json.RawMessage(`{"type":"object"}`)

// newServer returns a server of test tools. ended hears of calls of "hang" that were cancelled; over ends those that were not.
func newServer(ended chan<- error, over <-chan struct{}) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	add := func(t sdk.Tool, h func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
		if t.InputSchema == nil {
			t.InputSchema = object
		}
		s.AddTool(&t, h)
	}
	text := func(s string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
	}
	add(sdk.Tool{Name: "echo", Description: "returns its arguments", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}`)},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return text(string(r.Params.Arguments)), nil
		})
	add(sdk.Tool{Name: "meta", Title: "What stands beside the arguments"}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		data, err := json.Marshal(r.Params.Meta)
		return text(string(data)), err
	})
	add(sdk.Tool{Name: "fail"}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r := text("no such order")
		r.IsError = true
		return r, nil
	})
	add(sdk.Tool{Name: "environment", Description: "d"}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(strings.Join(os.Environ(), "\n")), nil
	})
	add(sdk.Tool{Name: "hang", Description: "d"}, func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		select {
		case <-ctx.Done():
		case <-over:
			return text("over"), nil
		}
		if ended != nil {
			ended <- ctx.Err()
		}
		return nil, ctx.Err()
	})
	add(sdk.Tool{Name: "die", Description: "d"}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		os.Exit(3)
		return nil, nil
	})
	add(sdk.Tool{Name: "spawn", Description: "d"}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		return text(fmt.Sprint(cmd.Process.Pid)), nil
	})
	add(sdk.Tool{Name: "grow", Description: "d"}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		s.RemoveTools("fail")
		add(sdk.Tool{Name: "grown", Description: "d"}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return text("new"), nil
		})
		return text("ok"), nil
	})
	no := false
	for name, a := range map[string]*sdk.ToolAnnotations{
		"reads": {ReadOnlyHint: true}, "adds": {DestructiveHint: &no, OpenWorldHint: &no}, "posts": {DestructiveHint: &no, IdempotentHint: true}, "wipes": {},
		"notion.search": nil, "notion_search": nil, "管理/删除": nil, strings.Repeat("n", 90): nil, strings.Repeat("x", 300): nil,
	} {
		add(sdk.Tool{Name: name, Description: "d", Annotations: a}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return text(name), nil
		})
	}
	return s
}

// stdio returns how to reach a server that is a process of its own.
func stdio(t testing.TB) mcp.Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcp.Config{Name: "shop", Command: []string{self}, Env: map[string]string{asServer: "1"}}
}

// overHTTP returns how to reach a server that listens on 127.0.0.1.
func overHTTP(t testing.TB, ended chan<- error) mcp.Config {
	t.Helper()
	over := make(chan struct{})
	s := newServer(ended, over)
	h := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(func() {
		close(over) // or the server would wait for its handlers
		h.Close()
	})
	return mcp.Config{Name: "shop", URL: h.URL}
}

// transports runs a test against both kinds of servers.
func transports(t *testing.T, test func(*testing.T, mcp.Config)) {
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		test(t, stdio(t))
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		test(t, overHTTP(t, nil))
	})
}

// connected is a connection with its tools, called as a worker calls them.
type connected struct {
	*mcp.Server
	t   *testing.T
	set *executor.Set
}

// connect connects with a context that ends with the connecting: whatever works later does not lean on it.
func connect(t *testing.T, cfg mcp.Config) *connected {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := mcp.Connect(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c := &connected{Server: s, t: t}
	c.read()
	return c
}

// read reads the tools.
func (c *connected) read() {
	c.t.Helper()
	tools, err := c.Tools(c.t.Context())
	if err == nil {
		c.set, err = executor.NewSet(mcp.Queue(c.Name()), tools...)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// defs returns the definitions by name.
func (c *connected) defs() map[string]schema.Tool {
	defs := map[string]schema.Tool{}
	for _, d := range c.set.Tools() {
		defs[d.Name] = d
	}
	return defs
}

// do runs a call.
func (c *connected) do(ctx context.Context, tool, args string) schema.Result {
	c.t.Helper()
	r, pending := c.set.Execute(ctx, &schema.Call{Run: "run-1", Turn: 2, Index: 3, Tool: tool, Args: schema.JSONText(args), Bound: `{"tenant":"acme"}`, Idempotent: true})
	if pending != nil {
		return schema.Result{Output: "pending: " + pending.Reason}
	}
	return r
}

// want runs a call that must succeed with an output.
func (c *connected) want(tool, args, output string) {
	c.t.Helper()
	if r := c.do(c.t.Context(), tool, args); !r.OK || r.Output != output {
		c.t.Errorf("%s %s: %+v, want %q", tool, args, r, output)
	}
}
