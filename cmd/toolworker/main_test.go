package main

import (
	"os"
	"slices"
	"testing"

	"github.com/jetcrew/jetcrew/bus/bustest/harness"
)

// program is the path of the program under test.
var program string

// The test binary is also an MCP server.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == mcpServerArg {
		mcpServer(slices.Contains(os.Args, mcpGrows))
		return
	}
	harness.Main(m, &program)
}
