package worker

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
)

// The test binary is also a worker program, whose tools do what tools should not do.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "hostile" {
		var grammar struct {
			cli.Common
			Hostile hostile `cmd:""`
		}
		debug.SetMaxStack(1 << 20) // an endless recursion shall not take the machine's memory first
		os.Exit(cli.Program{Name: "test", Grammar: &grammar, Common: &grammar.Common}.Main(os.Args[1:]))
	}
	bustest.Main(m)
}
