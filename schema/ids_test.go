package schema

import (
	"strings"
	"testing"
)

func TestIDs(t *testing.T) {
	t.Parallel()
	a, b := NewID(), NewID()
	if !ValidID(a) || a == b || a > b {
		t.Errorf("ids %q, %q: want two valid ones in order of time", a, b)
	}
	for _, bad := range []string{"", "a.b", "a b", "ü", "a/b", "*", ">", "a\n", strings.Repeat("x", 65)} {
		if ValidID(bad) {
			t.Errorf("%q is valid", bad)
		}
	}
}

func TestCheckQueue(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"files": true, "mcp-github": true, QueueAgents: true, "q_1": true, strings.Repeat("q", 64): true,
		QueueNone: false, "tools": false, "": false, "Files": false, "a.b": false, strings.Repeat("q", 65): false,
	} {
		if err := CheckQueue(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The values are the contract with workers in other languages.
func TestDerivedIDs(t *testing.T) {
	t.Parallel()
	if got := Digest([]byte("abc")); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("digest %s", got)
	}
	one := ChildRun("r", 1, 0, 1)
	if len(one) != 26 || !ValidID(one) || one != ChildRun("r", 1, 0, 1) {
		t.Errorf("child %q", one)
	}
	for _, other := range []string{ChildRun("r", 1, 0, 2), ChildRun("r", 1, 1, 1), ChildRun("r", 2, 0, 1), ChildRun("s", 1, 0, 1), ChildRun("r", 10, 1, 1)} {
		if other == one {
			t.Errorf("two calls have child %s", one)
		}
	}
	golden(t, "childrun.txt", one+"\n")
}

func TestToolDigest(t *testing.T) {
	t.Parallel()
	tool := Tool{Name: "a", Parameters: `{"type":"object"}`}
	if got := tool.WithDigest(); got.Digest != Digest([]byte(`{"type":"object"}`)) || tool.Digest != "" {
		t.Errorf("got %+v", got)
	}
}
