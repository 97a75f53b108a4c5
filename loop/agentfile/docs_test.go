package agentfile

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const codesHeading = "## Codes\n"

// TestDocumentKnowsEveryField compares the tables of docs/agent-file.md with the fields that the reader takes.
func TestDocumentKnowsEveryField(t *testing.T) {
	t.Parallel()
	doc := document(t)
	for heading, s := range map[string]*shape{
		"The file": shapeFile(), "model": shapeModel(), "model.options": shapeOptions(), "model.price": shapePrice(), "instructions": shapeInstructions(), "tools": shapeTool(),
		"filters": shapeFilter(), "policy": shapePolicy(), "policy.rules": shapeRule(), "subagents": shapeSubagent(), "handoff": shapeHandoff(fieldHandoff),
		"limits": shapeLimits(), "session": shapeSession(), "session.memory": shapeMemory(), "session.compaction": shapeCompaction(), "session.compaction.trigger": shapeTrigger(),
	} {
		_, section, ok := strings.Cut(doc, "\n## "+heading+"\n")
		if !ok {
			t.Errorf("there is no section %s", heading)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		var got, want []string
		for _, m := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|").FindAllStringSubmatch(section, -1) {
			got = append(got, m[1])
		}
		for _, set := range s.settings {
			want = append(want, set.names[0])
			for _, name := range set.names {
				if name != snake(name) && !strings.Contains(section, "`"+name+"`") {
					t.Errorf("%s: %s is not mentioned", heading, name)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-reader +document):\n%s", heading, diff)
		}
	}
}

// TestDocumentListsTheCodes compares the table of codes with that of the package; -update writes it.
func TestDocumentListsTheCodes(t *testing.T) {
	t.Parallel()
	doc := document(t)
	before, have, ok := strings.Cut(doc, codesHeading)
	if !ok {
		t.Fatal("there is no section on codes")
	}
	intro, have, _ := strings.Cut(have, "| code |")
	want := codeTable()
	if *update {
		if err := os.WriteFile(documentPath, []byte(before+codesHeading+intro+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff("| code |"+have, want); diff != "" {
		t.Errorf("the table of codes (-have +want; -update writes it):\n%s", diff)
	}
}

func codeTable() string {
	var b strings.Builder
	b.WriteString("| code | | says |\n|---|---|---|\n")
	for _, m := range Codes() {
		kind := "error"
		if m.Warning {
			kind = "warning"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.Code, kind, m.Text)
	}
	return b.String()
}

// TestDocumentedFileIsFine reads the example of the document.
func TestDocumentedFileIsFine(t *testing.T) {
	t.Parallel()
	_, text, _ := strings.Cut(document(t), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	f, err := Read("agent-file.md", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range f.Warnings {
		t.Errorf("line %d: %s", w.Line, w.Message)
	}
	if err := check(t, compiled(t), []byte(text)); err != nil {
		t.Error(err)
	}
}

var documentPath = filepath.Join("..", "..", "docs", "agent-file.md")

func document(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(documentPath)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
