package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/bus/embedded"
	"github.com/jetcrew/jetcrew/cmd/internal/clitest"
)

// testdata returns the absolute path of a file of testdata.
func testdata(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// data returns a file of the recorded conversations that are no part of the repository.
func data(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("JETCREW_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("recorded conversations are not here (JETCREW_DATA names their directory): %v", err)
	}
	return path
}

// summary replays with --json and returns the last line.
func summary(t *testing.T, args ...string) (harness.Result, replaySummary) {
	t.Helper()
	r := orchestrator(t, append([]string{"replay", "--json"}, args...)...)
	lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
	var s replaySummary
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil || s.Type != "summary" {
		t.Fatalf("no summary: %v\n%+v", err, r)
	}
	return r, s
}

func TestReplayRecordedConversations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file               string
		transcripts, calls int
		parallel           bool // turns with several calls
	}{
		{"airline.jsonl", 100, 572, false},
		{"parallel.jsonl", 216, 579, true},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			r, s := summary(t, data(t, c.file), "--workers", "3", "--delay", "0-50ms", "--parallel", "16")
			if r.Code != 0 || s.Transcripts != c.transcripts || s.Calls != c.calls || s.Different != 0 || s.Failed != 0 {
				t.Errorf("code %d, %+v\n%s", r.Code, s, r.Stderr)
			}
			if len(s.Workers) != 3 {
				t.Errorf("calls by worker %v, want three workers", s.Workers)
			}
			if c.parallel && s.Disordered == 0 {
				t.Errorf("no turn's results arrived out of order: %+v", s)
			}
		})
	}
}

func TestReplayOwnTranscripts(t *testing.T) {
	t.Parallel()
	recorded := filepath.Join(t.TempDir(), "recorded.jsonl")
	file := testdata(t, "small.jsonl")
	r, s := summary(t, file, "--delay", "0-30ms", "--fail", "20%", "--seed", "3", "--record", recorded)
	if r.Code != 0 || s.Transcripts != 4 || s.Turns != 9 || s.Calls != 13 || s.Redelivered == 0 {
		t.Fatalf("%+v\n%+v", s, r)
	}
	// What was recorded of the replay replays as well, and says the same.
	r, s = summary(t, recorded)
	if r.Code != 0 || s.Transcripts != 4 || s.Turns != 9 || s.Calls != 13 {
		t.Errorf("the recording of the replay: %+v\n%+v", s, r)
	}
	r, s = summary(t, file, "--id", "failures", "--workers", "1")
	if r.Code != 0 || s.Transcripts != 1 || s.Turns != 2 || s.Calls != 5 || len(s.Workers) != 1 {
		t.Errorf("one transcript: %+v\n%+v", s, r)
	}
}

func TestReplayShowsDifferences(t *testing.T) {
	t.Parallel()
	srv, err := embedded.Start(embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	text, err := os.ReadFile(testdata(t, "small.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(t.TempDir(), "changed.jsonl")
	if err := os.WriteFile(changed, []byte(strings.ReplaceAll(string(text), "-3 °C", "-4 °C")), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"NATS_URL=" + srv.URL()}
	mock := harness.Start(t, harness.Command{Program: program, Args: []string{"worker", "mock", changed}, Env: env})
	r := harness.Run(t, harness.Command{Program: program, Args: []string{"replay", testdata(t, "small.jsonl")}, Env: env})
	if r.Code != 1 {
		t.Errorf("code %d, want 1", r.Code)
	}
	for _, want := range []string{"parallel-ids-repeat turn 1 call 1 weather.now: output", "  - -3 °C", "  + -4 °C", "1 transcript different"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("output lacks %q:\n%s%s", want, r.Stdout, r.Stderr)
		}
	}
	mock.Signal(syscall.SIGTERM)
	if r := mock.Wait(); r.Code != 0 {
		t.Errorf("mock: %+v", r)
	}
}

func TestReplayWithoutMocks(t *testing.T) {
	t.Parallel()
	srv, err := embedded.Start(embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	r := orchestrator(t, "replay", testdata(t, "small.jsonl"), "--nats", srv.URL())
	if r.Code != 1 || !strings.Contains(r.Stderr, "no worker serves the queue mock") {
		t.Errorf("%+v", r)
	}
	r, s := summary(t, testdata(t, "small.jsonl"), "--nats", srv.URL(), "--workers", "2")
	if r.Code != 0 || s.Transcripts != 4 {
		t.Errorf("with workers of its own on that server: %+v\n%+v", s, r)
	}
}

func TestReplayInterrupted(t *testing.T) {
	t.Parallel()
	p := harness.Start(t, harness.Command{Program: program, Args: []string{
		"replay", testdata(t, "small.jsonl"), "--parallel", "1", "--delay", "10m", "--json",
		"--id", "assistant-begins", "--id", "user-interrupts",
	}})
	p.Await(`"id":"assistant-begins"`)
	p.Interrupt()
	r := p.Wait()
	if strings.Contains(r.Stderr, "a worker ended by itself") {
		t.Errorf("the workers heard the interrupt too: %s", r.Stderr)
	}
	if r.Code != 130 || !strings.Contains(r.Stderr, "interrupted") || strings.Contains(r.Stdout, "summary") {
		t.Errorf("%+v", r)
	}
}

func TestE01OneTraceOverAllProcesses(t *testing.T) {
	t.Parallel()
	collector := clitest.NewCollector(t)
	r := harness.Run(t, harness.Command{
		Program: program, Args: []string{"replay", testdata(t, "small.jsonl"), "--id", "parallel-ids-repeat"}, Env: collector.Env(),
	})
	if r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	spans := collector.Spans()
	services := map[string]int{}
	ids := map[string]bool{}
	for _, s := range spans {
		services[s.Service]++
		ids[s.ID] = true
		if s.Trace != spans[0].Trace {
			t.Errorf("span %s of %s is in another trace", s.Name, s.Service)
		}
	}
	if services["jetcrew-orchestrator"] == 0 || services["jetcrew-toolworker"] != 2*6 {
		t.Errorf("spans by service: %v, want two of a worker for each of 6 calls: it runs, its result is published", services)
	}
	roots := slices.DeleteFunc(spans, func(s clitest.Span) bool { return ids[s.Parent] })
	if len(roots) != 1 || roots[0].Parent != "" {
		t.Errorf("spans without a parent that is here: %+v, want the run's", roots)
	}
}
