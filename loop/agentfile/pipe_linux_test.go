package agentfile

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestPipeThatNobodyWrites: a named pipe without a writer is an empty file, not a wait without an end.
func TestPipeThatNobodyWrites(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := Open(path); err == nil {
		t.Errorf("an agent file of nothing: %+v", f)
	}
	if err := LoadEnv(path); err != nil {
		t.Errorf("an environment file of nothing: %v", err)
	}
}
