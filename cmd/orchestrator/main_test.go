package main

import (
	"strings"
	"testing"

	"github.com/jetcrew/jetcrew/bus/bustest/harness"
)

// program is the path of the program under test.
var program string

func TestMain(m *testing.M) { harness.Main(m, &program) }

// orchestrator runs the program and returns how it ended.
func orchestrator(t *testing.T, args ...string) harness.Result {
	t.Helper()
	return harness.Run(t, harness.Command{Program: program, Args: args})
}

// TestNumbersOutOfBounds: the command line is refused before anything is started.
func TestNumbersOutOfBounds(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"run", "--workers=-1", "x"},
		{"chat", "--workers=100000"},
		{"replay", testdata(t, "small.jsonl"), "--workers=65"},
		{"replay", testdata(t, "small.jsonl"), "--parallel=0"},
		{"tools", "call", "bash", "--timeout=-1s"},
	} {
		r := orchestrator(t, args...)
		if r.Code != 2 || !strings.Contains(r.Stderr, "want") {
			t.Errorf("%v: exit %d, %q", args, r.Code, r.Stderr)
		}
	}
}
