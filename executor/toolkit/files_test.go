package toolkit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/executor/toolkit"
	"github.com/jetcrew/jetcrew/schema"
)

func TestNamed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, root, want string }{
		{"gpu", ".", `toolkit "gpu": unknown`},
		{"files", "/nonexistent/x", `toolkit "files": `},
		{"shell", "/nonexistent/x", `toolkit "shell": `},
	} {
		if _, err := toolkit.Named(tt.name, tt.root); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	want := map[string]string{"read_file": "read", "list_files": "read", "search_files": "read", "watch_files": "read", "write_file": "write", "apply_patch": "write", "bash": "destructive"}
	got := map[string]string{}
	for _, name := range toolkit.Names() {
		for _, tool := range newTools(t, name, nil).set.Tools() {
			got[tool.Name] = tool.Effect
			if tool.TimeoutMS <= 0 || tool.Idempotent != (tool.Effect == schema.EffectRead) {
				t.Errorf("%s: timeout %d ms, idempotent %v", tool.Name, tool.TimeoutMS, tool.Idempotent)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	k := newTools(t, "files", map[string]string{"a.txt": "one\ntwo\nthree", "bin": "a\x00b", "empty": "", "d/x": ""})
	if err := syscall.Mkfifo(filepath.Join(k.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		`{"path":"a.txt"}`:                                        "one\ntwo\nthree",
		`{"path":"./d/../a.txt","offset":2}`:                      "two\nthree",
		`{"path":"a.txt","offset":2,"limit":1}`:                   "two\n",
		`{"path":"a.txt","limit":9}`:                              "one\ntwo\nthree",
		`{"path":"empty"}`:                                        "",
		fmt.Sprintf(`{"path":%q}`, filepath.Join(k.dir, "a.txt")): "one\ntwo\nthree",
	} {
		if got := k.ok("read_file", args); got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
	for args, want := range map[string]string{
		`{"path":"nope"}`:             "nope: file does not exist",
		`{"path":"d"}`:                "d: is a directory",
		`{"path":"bin"}`:              "bin: is not a text file",
		`{"path":"pipe"}`:             "pipe: is not a regular file",
		`{"path":"a.txt","offset":4}`: "a.txt: offset 4 is beyond the end, the file has 3 lines",
	} {
		if got := k.fails("read_file", args); got.Type != schema.ToolFailed || got.Message != want {
			t.Errorf("%s: got %v, want %q", args, got, want)
		}
	}
	for _, args := range []string{`{}`, `{"path":""}`, `{"path":" \t"}`, `{"path":"a","offset":0}`, `{"file":"a"}`} {
		if got := k.fails("read_file", args); got.Type != schema.InvalidArguments {
			t.Errorf("%s: %v", args, got)
		}
	}
}

func TestReadFileIsBounded(t *testing.T) {
	t.Parallel()
	k := newTools(t, "files", map[string]string{"long": "first" + strings.Repeat("🙂", 100_000) + "last"})
	for _, args := range []string{`{"path":"long"}`, `{"path":"long","offset":1}`} {
		got := k.ok("read_file", args)
		if len(got) > 65<<10 || !utf8.ValidString(got) || strings.Contains(got, "\uFFFD") ||
			!strings.HasPrefix(got, "first🙂") || !strings.HasSuffix(got, "🙂last") || !strings.Contains(got, " bytes omitted ...]") {
			t.Errorf("%s: %d bytes, %.60q", args, len(got), got)
		}
	}
}

func TestListAndSearch(t *testing.T) {
	t.Parallel()
	k := newTools(t, "files", map[string]string{
		"main.go": "package main\nfunc main() {}\n", "doc/a.md": "# Main\r\nmain\r\n", "doc/deep/b.md": "none", ".git/x.go": "main", "bin.go": "main\x00", "last": "no newline main",
	})
	k.link("main.go", "link.go")
	k.link("/etc", "out")
	if err := os.Mkdir(filepath.Join(k.dir, "none"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ tool, args, want string }{
		{"list_files", ``, ".git/\nbin.go\ndoc/\nlast\nlink.go@\nmain.go\nnone/\nout@\n"},
		{"list_files", `{"path":"none"}`, "the directory is empty"},
		{"list_files", `{"path":"doc","glob":"*.md"}`, "doc/a.md\ndoc/deep/b.md\n"},
		{"list_files", `{"glob":"doc/*.md"}`, "doc/a.md\n"},
		{"list_files", `{"glob":"**/deep/**"}`, "doc/deep/\ndoc/deep/b.md\n"},
		{"list_files", `{"glob":"*.py"}`, "no match"},
		{"search_files", `{"pattern":"main$"}`, "doc/a.md:2: main\nlast:1: no newline main\nmain.go:1: package main\n"},
		{"search_files", `{"pattern":"(?i)^#? ?main$","glob":"*.md"}`, "doc/a.md:1: # Main\ndoc/a.md:2: main\n"},
		{"search_files", `{"pattern":"func","path":"main.go"}`, "main.go:2: func main() {}\n"},
		{"search_files", `{"pattern":"^$"}`, "no match"},
	} {
		if diff := cmp.Diff(tt.want, k.ok(tt.tool, tt.args)); diff != "" {
			t.Errorf("%s %s: %s", tt.tool, tt.args, diff)
		}
	}
	for _, tt := range []struct{ tool, args string }{
		{"list_files", `{"path":"out"}`},
		{"list_files", `{"path":".."}`},
		{"list_files", `{"glob":"["}`},
		{"list_files", `{"path":"nope"}`},
		{"search_files", `{"pattern":"("}`},
		{"search_files", `{"pattern":"x","path":"../x"}`},
	} {
		if got := k.fails(tt.tool, tt.args); got.Type != schema.ToolFailed {
			t.Errorf("%s %s: %v", tt.tool, tt.args, got)
		}
	}
	for i := range 1100 {
		k.put(fmt.Sprintf("many/%04d", i), "needle 🙂"+strings.Repeat("🙂", 100))
	}
	for _, out := range []string{k.ok("list_files", `{"path":"many"}`), k.ok("search_files", `{"pattern":"needle"}`)} {
		if len(out) > 65<<10 || !strings.Contains(out, "are left out") || strings.Contains(out, "\uFFFD") {
			t.Errorf("%d bytes, ends %.100q", len(out), out[len(out)-100:])
		}
	}
}

// TestD26NoWayOut tries every file tool on every way out of its root.
func TestD26NoWayOut(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := newTools(t, "files", map[string]string{"in": "in\n"})
	evil := k.dir + "-evil"
	if err := os.Mkdir(evil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(evil) })
	k.link(outside, "dir")
	k.link(secret, "file")
	k.link(filepath.Join(outside, "fresh"), "dangling")
	k.link("in", "inner")
	before := k.tree()
	for _, path := range []string{secret, "../" + filepath.Base(outside) + "/secret", "dir/secret", "file", "dangling", "dir/fresh", evil + "/x", "../" + filepath.Base(evil) + "/x", "a/../../x"} {
		for tool, args := range map[string]string{
			"read_file": `{"path":%q}`, "write_file": `{"path":%q,"content":"x"}`, "watch_files": `{"path":%q,"timeout_ms":1}`,
			"search_files": `{"path":%q,"pattern":"secret"}`,
		} {
			if r := k.exec(t.Context(), tool, fmt.Sprintf(args, path)); r.OK && r.Output != "no match" && r.Output != "no change" {
				t.Errorf("%s %s: %s", tool, path, r.Output)
			}
		}
		k.fails("apply_patch", patchArgs("--- /dev/null\n+++ "+path+"\n@@ -0,0 +1 @@\n+x\n"))
		k.fails("apply_patch", patchArgs("--- a/in\n+++ b/"+path+"\n@@ -1 +1 @@\n-in\n+x\n"))
	}
	k.fails("write_file", `{"path":"inner","content":"x"}`)
	k.fails("write_file", `{"path":".","content":"x"}`)
	if diff := cmp.Diff(before, k.tree()); diff != "" {
		t.Error(diff)
	}
	if data, err := os.ReadFile(secret); err != nil || string(data) != "secret" {
		t.Errorf("secret is %q, %v", data, err)
	}
	for _, dir := range []string{outside, evil} {
		if entries, _ := os.ReadDir(dir); len(entries) > 1 {
			t.Errorf("%s has %v", dir, entries)
		}
	}
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	k := newTools(t, "files", map[string]string{"a": "old"})
	if err := os.Chmod(filepath.Join(k.dir, "a"), 0o751); err != nil {
		t.Fatal(err)
	}
	if got := k.ok("write_file", `{"path":"x/y/z","content":"neu\n"}`); got != "wrote 4 bytes to x/y/z" {
		t.Error(got)
	}
	k.ok("write_file", `{"path":"a","content":""}`)
	if diff := cmp.Diff(map[string]string{"a": "", "x/y/z": "neu\n"}, k.tree()); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(filepath.Join(k.dir, "a")); err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for _, args := range []string{`{"path":"x","content":""}`, `{"path":"a/b","content":""}`} {
		k.fails("write_file", args)
	}
	for _, args := range []string{`{"path":" ","content":""}`, `{"path":"b"}`} {
		if got := k.fails("write_file", args); got.Type != schema.InvalidArguments {
			t.Errorf("%s: %v", args, got)
		}
	}
	if diff := cmp.Diff(map[string]string{"a": "", "x/y/z": "neu\n"}, k.tree()); diff != "" {
		t.Error(diff)
	}
}

func TestWatchFiles(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, args string
		do         func(k *tools)
		want       string
		after      time.Duration
		progress   []string
	}{
		{"nothing", `{}`, nil, "no change", 3 * time.Second, []string{
			"watching . (2 files)", "watching .: no change after 500ms", "watching .: no change after 1s",
			"watching .: no change after 1.5s", "watching .: no change after 2s", "watching .: no change after 2.5s",
		}},
		{"short", `{"timeout_ms":150}`, nil, "no change", 200 * time.Millisecond, []string{"watching . (2 files)"}},
		{"created", `{"path":"d"}`, func(k *tools) { k.put("d/new", "x") }, "created d/new\n", 300 * time.Millisecond, []string{"watching d (1 files)"}},
		{"changed", `{}`, func(k *tools) { k.put("d/a", "longer"); k.put("c", "x") }, "created c\nchanged d/a\n", 300 * time.Millisecond, []string{"watching . (2 files)"}},
		{"removed", `{"path":"b"}`, func(k *tools) { _ = os.Remove(filepath.Join(k.dir, "b")) }, "removed b\n", 300 * time.Millisecond, []string{"watching b (1 files)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := newTools(t, "files", map[string]string{"d/a": "a", "b": "b"})
			synctest.Test(t, func(t *testing.T) {
				var progress []string
				ctx := schema.WithProgress(t.Context(), func(s string) { progress = append(progress, s) })
				if tt.do != nil {
					time.AfterFunc(250*time.Millisecond, func() { tt.do(k) })
				}
				start := time.Now()
				r := k.exec(ctx, "watch_files", tt.args)
				if r.Output != tt.want || time.Since(start) != tt.after {
					t.Errorf("got %q after %v, want %q after %v", r.Output, time.Since(start), tt.want, tt.after)
				}
				if diff := cmp.Diff(tt.progress, progress); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
	k := newTools(t, "files", nil)
	k.fails("watch_files", `{"path":"nope"}`)
	if got := k.fails("watch_files", `{"timeout_ms":60001}`); got.Type != schema.InvalidArguments {
		t.Error(got)
	}
}

func TestFilesEndWithTheirContext(t *testing.T) {
	t.Parallel()
	k := newTools(t, "files", map[string]string{"a": "a"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	kit, err := toolkit.Named("files", k.dir)
	if err != nil {
		t.Fatal(err)
	}
	args := map[string]schema.JSONText{
		"read_file": `{"path":"a"}`, "list_files": `{"glob":"*"}`, "search_files": `{"pattern":"a"}`, "watch_files": `{}`,
		"write_file": `{"path":"b","content":""}`, "apply_patch": schema.JSONText(patchArgs("--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n")),
	}
	for _, tool := range kit {
		if out, err := tool.Run(ctx, &schema.Call{Args: args[tool.Name]}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %q, %v", tool.Name, out, err)
		}
	}
	if diff := cmp.Diff(map[string]string{"a": "a"}, k.tree()); diff != "" {
		t.Error(diff)
	}
}
