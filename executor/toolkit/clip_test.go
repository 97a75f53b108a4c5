package toolkit

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClip(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"12345678", "12345678"},
		{"123456789", "1234\n[... 1 bytes omitted ...]\n6789"},
		{"123🙂🙂789", "123\n[... 8 bytes omitted ...]\n789"},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80", "\x80\x80\x80\x80\n[... 1 bytes omitted ...]\n\x80\x80\x80\x80"},
	} {
		for _, step := range []int{1, 2, 3, 5, 100} {
			c := newClip(8)
			for rest := tt.in; rest != ""; {
				k := min(step, len(rest))
				_, _ = c.Write([]byte(rest[:k]))
				rest = rest[k:]
			}
			if got := c.String(); got != tt.want {
				t.Errorf("%q by %d: got %q, want %q", tt.in, step, got, tt.want)
			}
		}
	}
	if got := lastText("ab🙂🙂", 5); got != "...🙂" {
		t.Errorf("got %q", got)
	}
}

// FuzzClip checks against the whole text what is kept of it.
func FuzzClip(f *testing.F) {
	f.Add("hello 🙂 world", uint8(3), uint8(10))
	f.Fuzz(func(t *testing.T, in string, step, limit uint8) {
		c := newClip(int(limit)/2*2 + 2*utf8.UTFMax)
		for rest := in; rest != ""; {
			k := min(int(step)+1, len(rest))
			_, _ = c.Write([]byte(rest[:k]))
			rest = rest[k:]
		}
		head, tail, cut := strings.Cut(c.String(), " bytes omitted ...]\n")
		switch {
		case !cut || len(in) <= 2*c.half:
			if c.String() != in {
				t.Errorf("got %q, want %q", c.String(), in)
			}
		case !strings.HasSuffix(in, tail) || !strings.HasPrefix(head, in[:max(c.half-utf8.UTFMax, 0)]):
			t.Errorf("got %q of %q", c.String(), in)
		case utf8.ValidString(in) && !utf8.ValidString(c.String()):
			t.Errorf("a character of %q is split: %q", in, c.String())
		}
	})
}

// FuzzParsePatch: whatever a model writes is a patch or an error, and applying it to a text ends.
func FuzzParsePatch(f *testing.F) {
	f.Add("--- a/a\n+++ b/a\n@@ -1,2 +1 @@\n 1\n-2\n+3\n", "1\n2\n")
	f.Add("diff --git a/a b/b\nrename from a\nrename to b\n", "")
	f.Add("--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n+x\n\\ No newline", "x")
	f.Fuzz(func(t *testing.T, patch, file string) {
		parts, err := parsePatch(patch)
		if err != nil {
			return
		}
		for _, fp := range parts {
			if fp.from == "" && fp.to == "" {
				t.Errorf("a part without a name in %q", patch)
			}
			_, _ = fp.apply(&change{new: &content{data: []byte(file)}})
		}
	})
}
