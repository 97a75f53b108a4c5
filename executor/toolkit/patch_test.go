package toolkit_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/schema"
)

func patchArgs(patch string) string {
	args, _ := json.Marshal(map[string]string{"patch": patch})
	return string(args)
}

func TestApplyPatch(t *testing.T) {
	t.Parallel()
	ten := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	tests := []struct {
		name   string
		before map[string]string
		patch  string
		after  map[string]string
		want   string
	}{
		{"change", map[string]string{"a": ten}, "--- a/a\n+++ b/a\n@@ -2,3 +2,3 @@ func\n 2\n-3\n+three\n 4\n", map[string]string{"a": strings.Replace(ten, "3\n", "three\n", 1)}, "changed a\n"},
		{"two hunks that move", map[string]string{"a": ten}, "--- a\n+++ a\n@@ -1,2 +1,4 @@\n 1\n+x\n+y\n 2\n@@ -9,2 +11,1 @@\n-9\n 10\n", map[string]string{"a": "1\nx\ny\n2\n3\n4\n5\n6\n7\n8\n10\n"}, "changed a\n"},
		{"wrong line and counts", map[string]string{"a": ten}, "--- a/a\n+++ b/a\n@@ -700,9 +1 @@\n 7\n-8\n+eight\n", map[string]string{"a": strings.Replace(ten, "8\n", "eight\n", 1)}, "changed a\n"},
		{"nearest of two", map[string]string{"a": "x\ny\nx\ny\n"}, "--- a/a\n+++ b/a\n@@ -3 +3 @@\n-x\n+z\n", map[string]string{"a": "x\ny\nz\ny\n"}, "changed a\n"},
		{"insert only", map[string]string{"a": "1\n2\n"}, "--- a/a\n+++ b/a\n@@ -1,0 +2 @@\n+x\n", map[string]string{"a": "1\nx\n2\n"}, "changed a\n"},
		{"stripped blank line", map[string]string{"a": "1\n\n2\n"}, "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n\n-2\n+3\n", map[string]string{"a": "1\n\n3\n"}, "changed a\n"},
		{"line ends of the file", map[string]string{"a": "1\r\n2\r\n"}, "--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n 1\n+x\n 2\n", map[string]string{"a": "1\r\nx\r\n2\r\n"}, "changed a\n"},
		{"no newline at the end", map[string]string{"a": "1\n2"}, "--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n 1\n-2\n\\ No newline at end of file\n+2\n+3\n\\ No newline at end of file\n", map[string]string{"a": "1\n2\n3"}, "changed a\n"},
		{"behind an open line", map[string]string{"a": "1"}, "--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n 1\n+2\n", map[string]string{"a": "1\n2\n"}, "changed a\n"},
		{"lines like headers", map[string]string{"a": "-- x\ny\n"}, "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n--- x\n+++ z\n y\n", map[string]string{"a": "++ z\ny\n"}, "changed a\n"},
		{"create and remove", map[string]string{"old": "x\n"}, "diff --git a/old b/old\ndeleted file mode 100644\nindex 1..0\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\ndiff --git a/d/new b/d/new\nnew file mode 100755\nindex 0..1\n--- /dev/null\n+++ b/d/new\n@@ -0,0 +1,2 @@\n+a\n+b\n", map[string]string{"d/new": "a\nb\n"}, "removed old\ncreated d/new\n"},
		{"empty file", nil, "diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n", map[string]string{"e": ""}, "created e\n"},
		{"rename", map[string]string{"a": "1\n2\n"}, "diff --git a/a b/b\nsimilarity index 60%\nrename from a\nrename to b\nindex 1..2 100644\n--- a/a\n+++ b/b\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n", map[string]string{"b": "1\n3\n"}, "renamed a to b\n"},
		{"one file twice", map[string]string{"a": "1\n2\n"}, "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+one\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-2\n+two\n", map[string]string{"a": "one\ntwo\n"}, "changed a\nchanged a\n"},
		{"quoted name, prose around", map[string]string{"ä b": "1\n"}, "Here it is:\n\n--- \"a/\\303\\244 b\"\t2024-01-01\n+++ \"b/\\303\\244 b\"\n@@ -1 +1 @@\n-1\n+2\n\nThat was it.\n", map[string]string{"ä b": "2\n"}, "changed ä b\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := newTools(t, "files", tt.before)
			if diff := cmp.Diff(tt.want, k.ok("apply_patch", patchArgs(tt.patch))); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.after, k.tree()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestD26FailedPatchChangesNothing: each patch begins with a part that would fit.
func TestD26FailedPatchChangesNothing(t *testing.T) {
	t.Parallel()
	const good = "--- /dev/null\n+++ b/sub/fresh\n@@ -0,0 +1 @@\n+x\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+one\n"
	tests := []struct{ name, patch, want string }{
		{"does not fit", "--- a/b\n+++ b/b\n@@ -1 +1 @@\n-nope\n+x\n", `hunk 1: its lines are not in the file as they stand; the first of them is "nope"`},
		{"missing file", "--- a/nope\n+++ b/nope\n@@ -1 +1 @@\n-1\n+x\n", "nope: does not exist"},
		{"file that exists", "--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+x\n", "b: exists already"},
		{"rename onto a file", "diff --git a/a b/b\nrename from a\nrename to b\n", "b: exists already"},
		{"rename onto a link", "diff --git a/b b/link\nrename from b\nrename to link\n", "link: is a symbolic link"},
		{"through a link", "--- a/link\n+++ b/link\n@@ -1 +1 @@\n-2\n+x\n", "link: is a symbolic link"},
		{"new link", "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n", "symbolic links are not taken"},
		{"link by index", "diff --git a/b b/b\nindex 1..2 120000\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-2\n+x\n", "symbolic links are not taken"},
		{"file that becomes a link", "diff --git a/b b/b\nold mode 100644\nnew mode 120000\n", "symbolic links are not taken"},
		{"submodule", "diff --git a/s b/s\nnew file mode 160000\n", `mode "160000" is not taken`},
		{"set-user-id", "diff --git a/b b/b\nold mode 100644\nnew mode 104755\n", `mode "104755" is not taken`},
		{"binary", "diff --git a/b b/b\nGIT binary patch\n", "binary"},
		{"copy", "diff --git a/a b/c\ncopy from a\ncopy to c\n", "a copy is not taken"},
		{"escape", "--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n", "escapes"},
		{"half removal", "--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-2\n", "not all of its lines"},
		{"a directory in place of a file", "--- /dev/null\n+++ b/a/below\n@@ -0,0 +1 @@\n+x\n", "a"},
		{"bad hunk header", "--- a/b\n+++ b/b\n@@ x @@\n-2\n+3\n", `a hunk begins with`},
		{"no hunk header", "--- a/b\n+++ b/b\n-2\n+3\n", "before any"},
		{"other form", "*** Begin Patch\n*** Update File: b\n", "unified diff"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := newTools(t, "files", map[string]string{"a": "1\n", "b": "2\n3\n"})
			k.link("b", "link")
			before := k.tree()
			got := k.fails("apply_patch", patchArgs(good+tt.patch))
			if got.Type != schema.ToolFailed || !strings.Contains(got.Message, tt.want) {
				t.Errorf("got %v, want %q", got, tt.want)
			}
			if diff := cmp.Diff(before, k.tree()); diff != "" {
				t.Error(diff)
			}
			if _, err := os.Stat(filepath.Join(k.dir, "sub")); err == nil {
				t.Error("a directory was left behind")
			}
		})
	}
	k := newTools(t, "files", nil)
	for _, args := range []string{`{}`, `{"patch":" \n"}`} {
		if got := k.fails("apply_patch", args); got.Type != schema.InvalidArguments {
			t.Errorf("%s: %v", args, got)
		}
	}
	k.fails("apply_patch", patchArgs("just words"))
}

func TestPatchModes(t *testing.T) {
	t.Parallel()
	k := newTools(t, "files", map[string]string{"a": "1\n"})
	k.ok("apply_patch", patchArgs("diff --git a/a b/a\nold mode 100644\nnew mode 100755\n"))
	if info, err := os.Stat(filepath.Join(k.dir, "a")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
