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
