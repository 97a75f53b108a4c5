package toolkit_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/executor/toolkit"
	"github.com/jetcrew/jetcrew/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tools is a toolkit on a directory of its own, called as a worker calls it.
type tools struct {
	t   testing.TB
	dir string
	set *executor.Set
}

func newTools(t testing.TB, name string, files map[string]string) *tools {
	t.Helper()
	k := &tools{t: t, dir: t.TempDir()}
	for name, content := range files {
		k.put(name, content)
	}
	kit, err := toolkit.Named(name, k.dir)
	if err != nil {
		t.Fatal(err)
	}
	return k.use(kit)
}

func (k *tools) use(kit []executor.Tool) *tools {
	k.t.Helper()
	set, err := executor.NewSet("test", kit...)
	if err != nil {
		k.t.Fatal(err)
	}
	k.set = set
	return k
}

func (k *tools) put(name, content string) {
	k.t.Helper()
	path := filepath.Join(k.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		k.t.Fatal(err)
	}
}

func (k *tools) link(target, name string) {
	k.t.Helper()
	if err := os.Symlink(target, filepath.Join(k.dir, name)); err != nil {
		k.t.Fatal(err)
	}
}

// tree returns the contents of all files by name; of a link, "-> target".
func (k *tools) tree() map[string]string {
	k.t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(k.dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name := strings.TrimPrefix(path, k.dir+"/")
		if e.Type()&os.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			tree[name] = "-> " + target
			return err
		}
		data, err := os.ReadFile(path)
		tree[name] = string(data)
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return tree
}

func (k *tools) exec(ctx context.Context, tool, args string) schema.Result {
	k.t.Helper()
	r, pending := k.set.Execute(ctx, &schema.Call{Run: "r", Turn: 1, Tool: tool, Args: schema.JSONText(args)})
	if pending != nil {
		k.t.Fatalf("pending: %+v", pending)
	}
	return r
}

// ok returns the output of a call that must succeed.
func (k *tools) ok(tool, args string) string {
	k.t.Helper()
	r := k.exec(k.t.Context(), tool, args)
	if !r.OK {
		k.t.Fatalf("%s %.200s: %v", tool, args, r.Error)
	}
	return r.Output
}

// fails returns the error of a call that must fail.
func (k *tools) fails(tool, args string) *schema.Error {
	k.t.Helper()
	r := k.exec(k.t.Context(), tool, args)
	if r.OK {
		k.t.Fatalf("%s %.200s: succeeded: %.200s", tool, args, r.Output)
	}
	return r.Error
}
