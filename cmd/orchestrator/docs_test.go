package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/loop/agentfile"
)

// block is a fenced block of a document: language and text.
var block = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

func readDoc(t *testing.T, elem ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestDocumentsQuoteTheExamples keeps the Go code of the documents what it claims to be: parts of programs that are
// built and tested.
func TestDocumentsQuoteTheExamples(t *testing.T) {
	t.Parallel()
	code := readDoc(t, "examples", "worker", "main.go") + readDoc(t, "examples", "agent", "main.go")
	for _, name := range []string{"README.md", filepath.Join("docs", "react.md")} {
		found := 0
		for _, b := range block.FindAllStringSubmatch(readDoc(t, name), -1) {
			if b[1] != "go" {
				continue
			}
			found++
			if !strings.Contains(code, b[2]) {
				t.Errorf("%s: this is in no example:\n%s", name, b[2])
			}
		}
		if found == 0 {
			t.Errorf("%s quotes no example", name)
		}
	}
}

// TestDocumentsNameCommandsThatExist tries every command line of the documents as far as its flags.
func TestDocumentsNameCommandsThatExist(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile("(?m)(?:^|[ `])orchestrator (run|chat|serve|demo|tools list|tools call|runs [a-z]+|approvals [a-z]+|dead [a-z]+|audit|check|explain|replay|init)((?: -{1,2}[a-z]+)*)")
	tried := map[string]bool{}
	for _, doc := range []string{readDoc(t, "README.md"), readDoc(t, "docs", "react.md"), readDoc(t, "docs", "serve.md"), readDoc(t, "docs", "governance.md"), readDoc(t, "docs", "debugging.md"), readDoc(t, "docs", "audit.md")} {
		for _, m := range command.FindAllStringSubmatch(doc, -1) {
			line := m[1] + m[2]
			if tried[line] {
				continue
			}
			tried[line] = true
			r := orchestrator(t, append(strings.Fields(m[1]), "--help")...)
			wantCode(t, r, 0)
			for _, flag := range strings.Fields(m[2]) {
				if !strings.Contains(r.Stdout, flag) {
					t.Errorf("%q: there is no flag %s", line, flag)
				}
			}
		}
	}
	if len(tried) < 6 {
		t.Errorf("only %d commands were found in the documents", len(tried))
	}
}

// TestDocumentedAgentFile reads the YAML of the documents as the rest of an agent file.
func TestDocumentedAgentFile(t *testing.T) {
	t.Parallel()
	for _, b := range block.FindAllStringSubmatch(readDoc(t, "docs", "react.md"), -1) {
		if b[1] != "yaml" {
			continue
		}
		spec, err := agentfile.Parse("react.md", []byte("version: jetcrew/v1\nid: x\n"+b[2]))
		if err != nil || !spec.Parallel.Calls || len(spec.Tools) != 3 {
			t.Errorf("%+v, %v", spec, err)
		}
		return
	}
	t.Error("docs/react.md has no agent file")
}

// TestDocumentsShowTheDemoAsItIs compares what the demo prints with what README shows of it, but for workers, times and
// places.
func TestDocumentsShowTheDemoAsItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "note.txt"), []byte("buy milk\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := harness.Run(t, harness.Command{Program: program, Dir: dir, Args: []string{"demo"}})
	wantCode(t, r, 0)
	shown := map[string]bool{}
	for line := range strings.Lines(readDoc(t, "README.md")) {
		shown[demoLine(line)] = true
	}
	found := 0
	for line := range strings.Lines(r.Stdout) {
		if want := demoLine(line); want != "" {
			found++
			if !shown[want] {
				t.Errorf("README does not show %q", line)
			}
		}
	}
	if found != 11 { // two lines of the greeting, the table, the claim
		t.Errorf("%d lines were compared, want 11:\n%s", found, r.Stdout)
	}
}

var tableRow = regexp.MustCompile(`^(\d\.\d +\S+ +)worker \d( +\d) .* (\d)$`)

// demoLine returns what is the same in every demo of one of its lines, "" for a line that never is the same.
func demoLine(line string) string {
	line = strings.TrimRight(line, "\n")
	for _, prefix := range []string{"Jetcrew demo", "  task ", "call  tool", "✓ 7 calls"} {
		if strings.HasPrefix(line, prefix) {
			return strings.Join(strings.Fields(line), " ")
		}
	}
	if m := tableRow.FindStringSubmatch(line); m != nil {
		return strings.Join(strings.Fields(m[1]+m[2]+" "+m[3]), " ")
	}
	return ""
}
