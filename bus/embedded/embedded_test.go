package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestOneServerADirectory: two servers with the same files lose what each other wrote.
func TestOneServerADirectory(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: filepath.Join(t.TempDir(), "data"), Silent: true}
	first, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Stop()
	if second, err := Start(cfg); err == nil {
		second.Stop()
		t.Error("a second server uses the same directory")
	} else if !strings.Contains(err.Error(), "another process uses it") {
		t.Errorf("the second server: %v", err)
	}
	first.Stop()
	again, err := Start(cfg)
	if err != nil {
		t.Fatalf("after the first one has stopped: %v", err)
	}
	again.Stop()
}

// TestStartWhileAnotherEnds: a directory that somebody has for a moment more, as a server that is ending, is waited for.
func TestStartWhileAnotherEnds(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	held, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(200*time.Millisecond, func() { _ = held.Close() }) // what it takes to end is the test's input
	s, err := Start(Config{Dir: dir, Silent: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
}

func TestADirectoryThatCannotBe(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if s, err := Start(Config{Dir: file, Silent: true}); err == nil {
		s.Stop()
		t.Error("a file served as a directory")
	}
	if took := time.Since(began); took > readyWithin/2 {
		t.Errorf("it took %v to say so", took)
	}
}

// TestAddress: who knows the directory finds the server while it runs, and only then.
func TestAddress(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	check := func(when, want string) {
		t.Helper()
		if got, err := Address(dir); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", when, got, err, want)
		}
	}
	check("no directory", "")
	for _, token := range []string{"a b", ""} {
		s, err := Start(Config{Dir: dir, Token: token})
		if err != nil {
			t.Fatal(err)
		}
		check("it runs", s.URL())
		info, err := os.Stat(filepath.Join(dir, addressName))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		s.Stop()
		check("it has stopped", "")
		if err := os.WriteFile(filepath.Join(dir, addressName), []byte("nats://127.0.0.1:1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		check("it was killed", "")
	}
	s, err := Start(Config{Dir: dir, Silent: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	check("it does not listen", "")
}
