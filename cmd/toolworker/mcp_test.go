package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// mcpServerArg makes the test binary an MCP server on its standard input and output.
const mcpServerArg = "mcp-server"

// mcpGrows, behind mcpServerArg, is a server with the tool grow, whose call gives it another one, fresh.
const mcpGrows = "growing"

// mcpServer answers as a server with one tool, status; the client of the program under test is the official one.
func mcpServer(grows bool) {
	tool := func(name string) string {
		return `{"name":"` + name + `","title":"Status of an order","inputSchema":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}}`
	}
	tools := tool("status")
	if grows {
		tools += "," + tool("grow")
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments json.RawMessage
			}
		}
		if json.Unmarshal(lines.Bytes(), &r) != nil || r.ID == nil {
			continue // a notification
		}
		answer := `"error":{"code":-32601,"message":"method not found"}`
		switch r.Method {
		case "initialize":
			answer = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"t","version":"1"}}`
		case "tools/list":
			answer = `"result":{"tools":[` + tools + `]}`
		case "tools/call":
			text, _ := json.Marshal(r.Params.Name + " " + string(r.Params.Arguments)) // a string
			answer = fmt.Sprintf(`"result":{"content":[{"type":"text","text":%s}]}`, text)
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", r.ID, answer)
		if r.Method == "tools/call" && r.Params.Name == "grow" {
			tools += "," + tool("fresh")
			fmt.Println(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
	}
}

// TestMCP: the tools of a server from the command line, and of one from a file, are tools of the fleet.
func TestMCP(t *testing.T) {
	t.Parallel()
	srv, b := connect(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mcp.json")
	config := fmt.Sprintf(`{"mcpServers":{
		"depot":{"command":%q,"args":[%q],"tools":{"status":{"effect":"read","idempotent":true}},"timeout":5},
		"off":{"command":"/no/such/command","disabled":true}}}`, self, mcpServerArg)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	w := startWorker(t, srv, nil, "serve", "--mcp", fmt.Sprintf("shop='%s' %s", self, mcpServerArg), "--mcp-config", file)
	w.Await("settings of an MCP server that mean nothing here")
	w.Await("queue mcp-shop, 4 slots: shop_status")
	for name, idempotent := range map[string]bool{"shop_status": false, "depot_status": true} {
		d := tool(t, b, name)
		if d.Idempotent != idempotent || d.Description != "Status of an order" || d.Queue != "mcp-"+d.Source {
			t.Errorf("%s: %+v", name, d)
		}
		c := &schema.Call{Run: schema.NewID(), Turn: 1, Tool: name, Args: `{"id":"7"}`}
		r, err := b.Dispatch(t.Context(), c, d.Queue, 20*time.Second)
		if err != nil || r.Output != `status {"id":"7"}` {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestMCPRefused: what is wrong is said before anything is served.
func TestMCPRefused(t *testing.T) {
	t.Parallel()
	srv, _ := connect(t)
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "mcp.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"nothing to serve":     {nil, 2, "what is to be served?"},
		"no command":           {[]string{"--mcp", "shop"}, 2, "want NAME=COMMAND or NAME=URL"},
		"a bad name":           {[]string{"--mcp", "Shop=x"}, 2, "a name is"},
		"an open quote":        {[]string{"--mcp", "shop=x 'y"}, 2, "a quote ' that does not end"},
		"twice":                {[]string{"--mcp", "shop=x", "--mcp", "shop=y"}, 2, "named twice"},
		"absent":               {[]string{"--mcp", "shop=/no/such/command"}, 1, `connect MCP server "shop": start:`},
		"not JSON":             {[]string{"--mcp-config", write("{")}, 2, "unexpected end"},
		"no server":            {[]string{"--mcp-config", write("{}")}, 2, "names no server"},
		"a bad limit":          {[]string{"--mcp-config", write(`{"mcpServers":{"a":{"url":"http://x","tools":{"t":{"limit":-1}}}}}`)}, 2, `tool "t": limit -1`},
		"a bad rate":           {[]string{"--mcp-config", write(`{"mcpServers":{"a":{"url":"http://x","tools":{"t":{"rate":"often"}}}}}`)}, 2, `tool "t": the rate "often"`},
		"sse":                  {[]string{"--mcp-config", write(`{"mcpServers":{"a":{"type":"sse","url":"http://x"}}}`)}, 2, `the type "sse" is not stdio or http`},
		"an unset variable":    {[]string{"--mcp-config", write(`{"mcpServers":{"a":{"url":"http://x","headers":{"Authorization":"Bearer ${JETCREW_TEST_UNSET}"}}}}`)}, 2, `Authorization: the variable "JETCREW_TEST_UNSET" is not set`},
		"all problems at once": {[]string{"--mcp-config", write(`{"mcpServers":{"a":{"url":"x"},"B":{"command":"x"}}}`)}, 2, `MCP server "B"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startWorker(t, srv, nil, append([]string{"serve"}, tt.args...)...).Wait()
			if r.Code != tt.code || !strings.Contains(r.Stderr, tt.want) {
				t.Errorf("exit %d, want %d with %q:\n%s", r.Code, tt.code, tt.want, r.Stderr)
			}
		})
	}
}
