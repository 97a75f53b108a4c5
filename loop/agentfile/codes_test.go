package agentfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// compareCodes compares place, code and path of each problem with those in a file.
func compareCodes(t *testing.T, file string, e *Error) {
	t.Helper()
	var b strings.Builder
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "%d:%d %s %s\n", p.Line, p.Column, p.Code, p.Path)
	}
	for _, p := range e.Warnings {
		fmt.Fprintf(&b, "%d:%d %s %s (warning)\n", p.Line, p.Column, p.Code, p.Path)
	}
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("codes (-want +got):\n%s", diff)
	}
}

// TestEveryCodeIsGiven: the table of codes is that of the source, and there is a file for each of them.
func TestEveryCodeIsGiven(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("codes.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`Code = "(jetcrew\.[A-Za-z.]+)"`).FindAllStringSubmatch(string(src), -1)
	listed := map[Code]bool{}
	for _, m := range Codes() {
		if listed[m.Code] {
			t.Errorf("%s stands in the table twice", m.Code)
		}
		listed[m.Code] = true
	}
	for _, m := range declared {
		if !listed[Code(m[1])] {
			t.Errorf("%s is missing in the table", m[1])
		}
	}
	if len(declared) != len(listed) {
		t.Errorf("%d codes are declared, %d are in the table", len(declared), len(listed))
	}
	given := givenCodes(t)
	for _, m := range Codes() {
		if kind, ok := given[m.Code]; !ok {
			t.Errorf("no file has %s", m.Code)
		} else if kind != m.Warning {
			t.Errorf("%s: a warning is %v, the table says %v", m.Code, kind, m.Warning)
		}
	}
	for code := range given {
		if !listed[code] {
			t.Errorf("%s is given and not in the table", code)
		}
	}
}

// givenCodes are the codes that files of all kinds give, and whether as warnings.
func givenCodes(t *testing.T) map[Code]bool {
	t.Helper()
	given := map[Code]bool{}
	read := func(data []byte) {
		f, err := Read("f", data)
		var e *Error
		switch {
		case errors.As(err, &e):
		case err != nil:
			t.Fatal(err)
		default:
			e = &Error{Warnings: f.Warnings}
		}
		for _, p := range e.Problems {
			given[p.Code] = false
		}
		for _, p := range e.Warnings {
			given[p.Code] = true
		}
	}
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		read(data)
	}
	for _, text := range []string{
		"", "version: \xff", strings.Repeat("#", MaxSize+1), strings.Repeat("[", 100), head + "? |\n  a\n: b\n", "version: jetcrew/v1\nid: a\nmodel: {model: b}\n",
	} {
		read([]byte(text))
	}
	return given
}
