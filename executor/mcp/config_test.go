package mcp_test

import (
	"strings"
	"testing"

	"github.com/jetcrew/jetcrew/executor/mcp"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cfg  mcp.Config
		want string
	}{
		"no name":         {mcp.Config{URL: "http://x"}, "a name is"},
		"bad name":        {mcp.Config{Name: "A b", URL: "http://x"}, "a name is"},
		"nothing":         {mcp.Config{Name: "n"}, "neither a command nor a URL"},
		"both":            {mcp.Config{Name: "n", Command: []string{"x"}, URL: "http://x"}, "want one of them"},
		"blank command":   {mcp.Config{Name: "n", Command: []string{" "}}, "the command is blank"},
		"headers":         {mcp.Config{Name: "n", Command: []string{"x"}, Header: map[string]string{"a": "b"}}, "headers go with a URL"},
		"variables":       {mcp.Config{Name: "n", URL: "http://x", Pass: []string{"a"}}, "variables go with a command"},
		"bad URL":         {mcp.Config{Name: "n", URL: "ftp://x"}, "the URL is not"},
		"bad effect":      {mcp.Config{Name: "n", URL: "http://x", Declare: map[string]mcp.Declaration{"t": {Effect: "none"}}}, `tool "t": the effect "none"`},
		"negative":        {mcp.Config{Name: "n", URL: "http://x", Start: -1}, "is negative"},
		"no such command": {mcp.Config{Name: "n", Command: []string{"/no/such/command"}}, "connect MCP server \"n\": start:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := mcp.Connect(t.Context(), tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
