package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/bus/embedded"
	"github.com/jetcrew/jetcrew/schema"
)

// connect starts a server and connects to it.
func connect(t *testing.T) (*embedded.Server, *bus.Bus) {
	t.Helper()
	srv, err := embedded.Start(embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	b, err := bus.Connect(t.Context(), bus.Config{URL: srv.URL(), Options: srv.Options()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return srv, b
}

// startWorker starts toolworker on srv.
func startWorker(t *testing.T, srv *embedded.Server, env []string, args ...string) *harness.Process {
	t.Helper()
	return harness.Start(t, harness.Command{Program: program, Args: args, Env: append(env, "NATS_URL="+srv.URL())})
}

// tool waits for a worker that has the tool.
func tool(t *testing.T, b *bus.Bus, name string) schema.Tool {
	t.Helper()
	sel := b.Select(name)
	if err := sel.Wait(t.Context(), 30*time.Second); err != nil {
		t.Fatal(err)
	}
	tools, err := sel.Tools(t.Context())
	if err != nil || len(tools) != 1 {
		t.Fatalf("tools %v, %v", tools, err)
	}
	return tools[0]
}

// appeared waits until files that match pattern are at least n. A file is the only sign that a shell command gives
// while it runs, and looking is the only way to see it.
func appeared(t *testing.T, pattern string, n int) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	late := time.NewTimer(60 * time.Second)
	defer late.Stop()
	for {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) >= n {
			return
		}
		select {
		case <-look.C:
		case <-late.C:
			t.Fatalf("%d files match %s, want %d", len(found), pattern, n)
		}
	}
}

func TestB20TermDrains(t *testing.T) {
	t.Parallel()
	srv, b := connect(t)
	dir := t.TempDir()
	first := startWorker(t, srv, nil, "serve", "--queue", "shell=3", "--root", dir)
	bash := tool(t, b, "bash")

	const calls = 8 // 3 run, 5 wait
	results := make([]schema.Result, calls)
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			script := fmt.Sprintf("echo x >> began.%d; until [ -e go ]; do sleep 0.02; done; echo done %d", i, i)
			args := schema.JSONText(fmt.Sprintf(`{"command":%q}`, script))
			r, err := b.Invoke(t.Context(), bash, args, schema.Principal{}, time.Minute)
			if err != nil {
				t.Errorf("call %d: %v", i, err)
			}
			results[i] = r
		})
	}
	appeared(t, filepath.Join(dir, "began.*"), 3)
	first.Signal(syscall.SIGTERM)
	second := startWorker(t, srv, nil, "serve", "--queue", "shell=5", "--root", dir)
	appeared(t, filepath.Join(dir, "began.*"), calls) // those that waited went to the other worker while the first still runs its own
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if r := first.Wait(); r.Code != 0 {
		t.Errorf("drained worker: %+v", r)
	}
	second.Signal(syscall.SIGTERM)
	if r := second.Wait(); r.Code != 0 {
		t.Errorf("idle worker: %+v", r)
	}
	by := map[string]int{}
	for i, r := range results {
		by[r.Worker]++
		if !r.OK || strings.TrimSpace(r.Output) != fmt.Sprintf("done %d", i) {
			t.Errorf("call %d: %+v", i, r)
		}
		if began, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("began.%d", i))); err != nil || string(began) != "x\n" {
			t.Errorf("call %d began %q, %v; want once", i, began, err)
		}
	}
	if len(by) != 2 {
		t.Errorf("calls by worker: %v, want two workers", by)
	}
}

// TestNobodyReadsTheLog: a worker whose log has lost its reader goes on, and its commands still notice that of theirs.
func TestNobodyReadsTheLog(t *testing.T) {
	t.Parallel()
	srv, b := connect(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "serve", "--queue", "shell", "--root", t.TempDir())
	cmd.Env = append(os.Environ(), "NATS_URL="+srv.URL())
	cmd.Stderr = write
	if err := errors.Join(read.Close(), cmd.Start(), write.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	bash := tool(t, b, "bash")
	nc, err := nats.Connect(srv.URL(), srv.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Request("jc.work.shell.0", []byte("no call"), 5*time.Second); err != nil { // which the worker logs
		t.Fatal(err)
	}
	for _, c := range []struct {
		command string
		ok      bool
	}{{"echo alive", true}, {"kill -s PIPE $$; echo deaf", false}, {"echo alive", true}} {
		args := schema.JSONText(fmt.Sprintf(`{"command":%q}`, c.command))
		r, err := b.Invoke(t.Context(), bash, args, schema.Principal{}, 20*time.Second)
		if err != nil || r.OK != c.ok {
			t.Errorf("%s: %+v, %v", c.command, r, err)
		}
	}
}

func TestB20RunOnceCallIsCancelledAtTheDrainLimit(t *testing.T) {
	t.Parallel()
	srv, b := connect(t)
	dir := t.TempDir()
	w := startWorker(t, srv, nil, "serve", "--queue", "shell", "--root", dir, "--drain", "100ms")
	bash := tool(t, b, "bash")
	done := make(chan schema.Result, 1)
	go func() {
		r, err := b.Invoke(context.Background(), bash, `{"command":"touch began; sleep 600"}`, schema.Principal{}, time.Minute)
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	appeared(t, filepath.Join(dir, "began"), 1)
	w.Signal(syscall.SIGTERM)
	if r := w.Wait(); r.Code != 0 {
		t.Errorf("worker: %+v", r)
	}
	if r := <-done; r.OK || r.Error.Type != schema.Cancelled {
		t.Errorf("result: %+v, want Cancelled", r)
	}
}

func TestWorkerWithoutServer(t *testing.T) {
	t.Parallel()
	r := harness.Run(t, harness.Command{
		Program: program, Args: []string{"serve", "--queue", "files"}, Env: []string{"NATS_URL=nats://me:secret@127.0.0.1:1"},
	})
	if r.Code != 1 || !strings.Contains(r.Stderr, "127.0.0.1:1") || !strings.Contains(r.Stderr, "NATS_URL") || strings.Contains(r.Stderr, "secret") {
		t.Errorf("%+v", r)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		code int
		say  string
	}{
		"nothing":         {nil, 2, "Usage: toolworker"},
		"unknown toolkit": {[]string{"serve", "--queue", "nope"}, 2, `toolkit "nope"`},
		"bad queue":       {[]string{"serve", "--queue", "No"}, 2, `queue "No"`},
		"bad slots":       {[]string{"serve", "--queue", "files=0"}, 2, `slots "0"`},
		"no root":         {[]string{"serve", "--queue", "files", "--root", "/does/not/exist"}, 2, "/does/not/exist"},
		"no such tool":    {[]string{"serve", "--queue", "files", "--limit", "bash=1"}, 2, `limit of "bash": no tool of that name is served here; there are`},
		"bad limit":       {[]string{"serve", "--queue", "shell", "--limit", "bash"}, 2, "want TOOL=N"},
		"bad rate":        {[]string{"serve", "--queue", "shell", "--rate", "bash=5"}, 2, "such as 10/m"},
		"no file":         {[]string{"mock", "/does/not/exist"}, 2, "/does/not/exist"},
		"bad delay":       {[]string{"mock", "main.go", "--delay", "soon"}, 2, `delay "soon"`},
		"near miss":       {[]string{"serv"}, 2, `did you mean "serve"`},
		"help":            {[]string{"help"}, 0, "Usage: toolworker"},
		"help of one":     {[]string{"help", "serve"}, 0, "Usage: toolworker serve"},
		"version":         {[]string{"--version"}, 0, "toolworker "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			r := harness.Run(t, harness.Command{Program: program, Args: c.args, Dir: dir})
			if r.Code != c.code || !strings.Contains(r.Stdout+r.Stderr, c.say) {
				t.Errorf("%+v, want code %d and %q", r, c.code, c.say)
			}
		})
	}
}

// TestInterruptSaysWhatHappens: who interrupts a worker is told that what runs may finish, and it does.
func TestInterruptSaysWhatHappens(t *testing.T) {
	t.Parallel()
	srv, b := connect(t)
	dir := t.TempDir()
	p := startWorker(t, srv, nil, "serve", "--queue", "shell", "--root", dir)
	tool(t, b, "bash")
	got := make(chan schema.Result, 1)
	go func() {
		call := &schema.Call{Run: schema.NewID(), Turn: 1, Tool: "bash", Args: `{"command":"touch begun; until test -e go; do sleep 0.01; done; echo whole"}`}
		r, err := b.Dispatch(t.Context(), call, "shell", time.Minute)
		if err != nil {
			t.Error(err)
		}
		got <- r
	}()
	appeared(t, filepath.Join(dir, "begun"), 1)
	p.Signal(os.Interrupt)
	p.Await("what runs may finish within 20s")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := <-got; !r.OK || !strings.Contains(r.Output, "whole") {
		t.Errorf("%+v", r)
	}
	if r := p.Wait(); r.Code != 130 && r.Code != 0 {
		t.Errorf("exit code %d: %s", r.Code, r.Stderr)
	}
}
