package agentfile

import "testing"

func TestMeet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"bash", "bash", true},
		{"bash", "bas", false},
		{"", "", true},
		{"", "*", true},
		{"", "?", false},
		{"git_*", "git_push", true},
		{"git_*", "*_push", true},
		{"git_*", "hub_*", false},
		{"*a*b*", "xxaxxbxx", true},
		{"*a*b", "b*a", false},
		{"a?c", "a*", true},
		{"a?", "*b", true},
		{"a?", "a", false},
		{"**", "x", true},
		{"x*", "*", true},
	} {
		if got := meet(c.a, c.b); got != c.want {
			t.Errorf("meet(%q, %q) = %v, want %v", c.a, c.b, got, c.want)
		}
		if got := meet(c.b, c.a); got != c.want {
			t.Errorf("meet(%q, %q) = %v, want %v", c.b, c.a, got, c.want)
		}
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, narrower string
		want              bool
	}{
		{"bash", "bash", true},
		{"bash", "shell/bash", true},
		{"shell/bash", "bash", false},
		{"shell/bash", "shell/bash", true},
		{"git_*", "git_push", true},
		{"git_*", "git_p*", true},
		{"git_p*", "git_*", false},
		{"git_?", "git_*", false},
		{"*", "agents/x", false},
		{"agents/*", "agents/x", true},
		{"*", "web/fetch_*", true},
	} {
		if got := covers(c.pattern, c.narrower); got != c.want {
			t.Errorf("covers(%q, %q) = %v, want %v", c.pattern, c.narrower, got, c.want)
		}
	}
}

func TestNamesAny(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, known string
		want           bool
	}{
		{"bash", "shell/bash", true},
		{"shell/*", "bash", true},
		{"*/bash", "bash", false},
		{"sh*/bash", "shell/bash", false},
		{"*/*", "shell/bash", false},
		{"*/bash", "*", true}, // a name may hold a slash
		{"?/bash", "?/bash", true},
		{"*", "agents/x", false},
	} {
		if got := namesAny(c.pattern, []string{c.known}); got != c.want {
			t.Errorf("namesAny(%q, %q) = %v, want %v", c.pattern, c.known, got, c.want)
		}
	}
}
