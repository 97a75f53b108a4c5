package main

import (
	"testing"

	"github.com/jetcrew/jetcrew/cmd/internal/clitest"
)

// program is the path of the program under test.
var program string

func TestMain(m *testing.M) { clitest.Main(m, &program) }

// orchestrator runs the program and returns how it ended.
func orchestrator(t *testing.T, args ...string) clitest.Result {
	t.Helper()
	return clitest.Run(t, clitest.Command{Program: program, Args: args})
}
