package toolkit_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestD26SwappedLink swaps a directory for a link out of the root and back, again and again, under the tools' hands.
func TestD26SwappedLink(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "f"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := newTools(t, "files", map[string]string{"real/f": "inside"})
	k.link(outside, "link")
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		at := func(name string) string { return filepath.Join(k.dir, name) }
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, name := range []string{"real", "link"} {
				_ = os.Rename(at(name), at("d"))
				_ = os.Rename(at("d"), at(name))
			}
		}
	})
	for range 300 {
		for tool, args := range map[string]string{
			"read_file": `{"path":"d/f"}`, "search_files": `{"path":"d","pattern":"secret"}`, "write_file": `{"path":"d/f","content":"mine"}`,
			"apply_patch": patchArgs("--- /dev/null\n+++ b/d/fresh\n@@ -0,0 +1 @@\n+x\n"),
		} {
			if r := k.exec(t.Context(), tool, args); strings.Contains(r.Output, "secret") {
				t.Errorf("%s: %s", tool, r.Output)
			}
		}
	}
	close(stop)
	swapper.Wait()
	if data, err := os.ReadFile(filepath.Join(outside, "f")); err != nil || string(data) != "secret" {
		t.Errorf("outside: %q, %v", data, err)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("outside: %v", entries)
	}
}
