package toolkit

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// obstacle is a context that, when it is asked the second time, puts something in the way.
type obstacle struct {
	context.Context
	asked int
	place func()
}

func (o *obstacle) Err() error {
	if o.asked++; o.asked == 2 {
		o.place()
	}
	return nil
}

func TestD26HalfACommitIsUndone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.WriteFile("a", []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	p := plan{files: &files{root: root}}
	for _, name := range []string{"a", "new/b", "c"} {
		c, err := p.change(name)
		if err != nil {
			t.Fatal(err)
		}
		c.write([]byte("new"))
	}
	ctx := &obstacle{Context: t.Context(), place: func() { _ = os.Mkdir(filepath.Join(dir, "c"), 0o755) }}
	if err := p.commit(ctx); err == nil || !strings.HasPrefix(err.Error(), "c: ") {
		t.Errorf("error %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 || entries[0].Name() != "a" || entries[1].Name() != "c" {
		t.Errorf("left: %v, %v", entries, err)
	}
	info, err := os.Stat(filepath.Join(dir, "a"))
	if data, _ := root.ReadFile("a"); err != nil || string(data) != "old" || info.Mode().Perm() != 0o640 {
		t.Errorf("a is %q, %v, %v", data, info.Mode(), err)
	}
}
