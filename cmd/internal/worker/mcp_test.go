package worker

import (
	"slices"
	"testing"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"":                     nil,
		"  npx  -y server ":    {"npx", "-y", "server"},
		`run 'a b' "c 'd'" ''`: {"run", "a b", "c 'd'", ""},
		`a'b c'd`:              {"ab cd"},
		`"open`:                nil,
	} {
		got, err := words(line)
		if !slices.Equal(got, want) || (err != nil) != (line == `"open`) {
			t.Errorf("%q: %q, %v; want %q", line, got, err, want)
		}
	}
}

func TestExpand(t *testing.T) {
	t.Setenv("JETCREW_TEST_A", "x${B}")
	got, err := expand(map[string]string{"a": "<${JETCREW_TEST_A}> $JETCREW_TEST_A", "b": "plain"})
	if err != nil || got["a"] != "<x${B}> $JETCREW_TEST_A" || got["b"] != "plain" {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"${JETCREW_TEST_NONE}", "${JETCREW_TEST_A"} {
		if _, err := expand(map[string]string{"a": bad}); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
