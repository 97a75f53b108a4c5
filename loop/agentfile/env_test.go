package agentfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseEnv(t *testing.T) {
	t.Parallel()
	got, err := parseEnv([]byte("\ufeff# keys\n\nA=1\r\nexport B = two words # why\nC='as $is # here' # c\n" +
		`D="line\nbreak \"q\""` + "\nE=\nF=x#y\nG= # empty\nH=a=b\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := [][2]string{
		{"A", "1"},
		{"B", "two words"},
		{"C", "as $is # here"},
		{"D", "line\nbreak \"q\""},
		{"E", ""},
		{"F", "x#y"},
		{"G", ""},
		{"H", "a=b"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

func TestParseEnvErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"A=1\nPLANTED":           "2: want KEY=VALUE",
		"1A=PLANTED":             "1: want KEY=VALUE",
		"=PLANTED":               "1: want KEY=VALUE",
		"A='PLANTED":             "1: A: the quote does not end",
		`A="PLANTED`:             "1: A: the quote does not end, or holds an unknown escape",
		`A="PLANTED" PLANTED`:    "1: A: text after the quote",
		`A="PLANTED\x00PLANTED"`: "1: A: the value holds a NUL",
	} {
		_, err := parseEnv([]byte(text))
		if err == nil || err.Error() != want || strings.Contains(err.Error(), "PLANTED") {
			t.Errorf("%q: err = %v, want %s", text, err, want)
		}
	}
}

func TestLoadEnvKeepsWhatIsSet(t *testing.T) {
	t.Setenv("JETCREW_TEST_SET", "")
	t.Setenv("JETCREW_TEST_NEW", "")
	os.Unsetenv("JETCREW_TEST_NEW") // Setenv above restores it
	path := filepath.Join(t.TempDir(), ".env")
	if err := os.WriteFile(path, []byte("JETCREW_TEST_SET=file\nJETCREW_TEST_NEW='from file'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := LoadEnv(path); err != nil {
		t.Fatal(err)
	}
	if got := os.Getenv("JETCREW_TEST_SET"); got != "" {
		t.Errorf("a variable that was set became %q", got)
	}
	if got := os.Getenv("JETCREW_TEST_NEW"); got != "from file" {
		t.Errorf("a new variable is %q", got)
	}
	if err := LoadEnv(path + ".none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("err = %v, want one that matches fs.ErrNotExist", err)
	}
	if err := os.WriteFile(path, []byte("oops\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := LoadEnv(path); err == nil || !strings.HasSuffix(err.Error(), ".env:1: want KEY=VALUE") {
		t.Errorf("err = %v, want one that names the line", err)
	}
}
