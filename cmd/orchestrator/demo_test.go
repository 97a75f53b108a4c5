package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/loop"
)

func TestDemoShowsWhatItPromises(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, `odd "name" %d.txt`), []byte("first line\nsecond line\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r := harness.Run(t, harness.Command{Program: program, Dir: dir, Args: []string{"demo", "--json"}})
	wantCode(t, r, 0)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v, want less than 20 s", took)
	}
	var settled, inMemory []int
	var killed bool
	var end demoSummary
	for line := range strings.Lines(r.Stdout) {
		var e loop.Event
		if strings.Contains(line, `"type":"demo_end"`) {
			if err := json.Unmarshal([]byte(line), &end); err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			continue
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		switch {
		case e.Type == "worker_killed":
			killed = true
		case e.Type == loop.EventToolSettled && e.Turn == 2:
			settled = append(settled, e.Call.Index)
		case e.Type == loop.EventToolResult && e.Turn == 2:
			inMemory = append(inMemory, e.Call.Index)
		case e.Type == loop.EventFinalOutput:
			wantInOrder(t, e.Text, `odd "name" %d.txt I read first: first line`, "no change")
		}
	}
	if !killed || len(settled) != 4 || settled[3] != 1 {
		t.Errorf("killed: %v; results of turn 2 came as %v, want that of the killed worker last", killed, settled)
	}
	for i, index := range inMemory {
		if i != index {
			t.Errorf("results of turn 2 went into memory as %v", inMemory)
		}
	}
	if !end.OK || len(end.Calls) != 7 {
		t.Errorf("the end: %+v", end)
	}
	noProcess(t, end.Killed)
}

func TestDemoInAnEmptyDirectory(t *testing.T) {
	t.Parallel()
	r := harness.Run(t, harness.Command{Program: program, Args: []string{"demo"}})
	wantCode(t, r, 0)
	wantInOrder(t, r.Stdout, "Jetcrew demo", "SIGKILL to worker", "delivery 2", "call  tool", "✓ 7 calls, 3 workers, one killed", "Next")
	if r.Stderr != "" || strings.Contains(r.Stdout, "TOOL_ERROR") {
		t.Errorf("stdout:\n%s\nstderr:\n%s\nwant no failure", r.Stdout, r.Stderr)
	}
}

func TestInterruptedDemoLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	p := harness.Start(t, harness.Command{Program: program, Args: []string{"demo"}})
	p.Await("SIGKILL")
	p.Signal(os.Interrupt)
	r := p.Wait()
	wantCode(t, r, 130)
	wantInOrder(t, r.Stderr, "interrupted")
	if strings.Contains(r.Stdout, "✓ 7 calls") {
		t.Error("an interrupted demo claims to have ended")
	}
	pids := regexp.MustCompile(`[123] \(pid (\d+)\)`).FindAllStringSubmatch(r.Stdout, demoWorkers)
	if len(pids) != demoWorkers {
		t.Fatalf("%d workers are named, want %d:\n%s", len(pids), demoWorkers, r.Stdout)
	}
	for _, m := range pids {
		pid, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		noProcess(t, pid)
	}
}

// noProcess fails the test if pid is running.
func noProcess(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err == nil && p.Signal(syscall.Signal(0)) == nil {
		t.Errorf("process %d is running", pid)
	}
}
