package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const document = "docs/wire.md"

func main() {
	check := flag.Bool("check", false, "compare instead of writing; exit 1 when the document is out of date")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "wiredoc:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	want, err := render(root)
	if err != nil {
		return err
	}
	path := filepath.Join(root, document)
	if !check {
		return os.WriteFile(path, want, 0o644)
	}
	have, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if diff := firstDifference(have, want); diff != "" {
		return fmt.Errorf("%s is not what the code says: %s; run go run ./tools/wiredoc and review the change", document, diff)
	}
	return nil
}

// moduleRoot returns the directory of go.mod, from the working directory upwards.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod here or above")
		}
		dir = parent
	}
}

// firstDifference describes the first line that differs; "" when none does.
func firstDifference(have, want []byte) string {
	if bytes.Equal(have, want) {
		return ""
	}
	h, w := strings.Split(string(have), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(h), len(w)) {
		if h[i] != w[i] {
			return fmt.Sprintf("line %d\n  has  %s\n  want %s\n", i+1, h[i], w[i])
		}
	}
	return fmt.Sprintf("it has %d lines, want %d", len(h), len(w))
}
