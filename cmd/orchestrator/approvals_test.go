package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jetcrew/jetcrew/cmd/internal/clitest"
)

// governed is the example of examples/governed, in a directory of its own.
type governed struct {
	t    *testing.T
	work string // where the tools work
	url  string // of the server
}

func newGoverned(t *testing.T) *governed {
	t.Helper()
	g := &governed{t: t, work: t.TempDir(), url: natsServer(t)}
	if err := os.WriteFile(filepath.Join(g.work, "go.mod"), []byte("module example\n\ngo 1.26\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := clitest.Start(t, clitest.Command{Program: program, Args: []string{"worker", "serve", "--nats", g.url, "--queue", "files=4", "--root", g.work}})
	w.Await("files")
	return g
}

func (g *governed) command(args ...string) clitest.Command {
	return clitest.Command{Program: program, Args: append(args, "--nats", g.url)}
}

func (g *governed) run(args ...string) clitest.Result {
	g.t.Helper()
	return clitest.Run(g.t, g.command(args...))
}

// file returns the path of a file of the example.
func (g *governed) file(name string) string {
	g.t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "examples", "governed", name))
	if err != nil {
		g.t.Fatal(err)
	}
	return path
}

// begin runs the example until it asks, and returns the process.
func (g *governed) begin() *clitest.Process {
	g.t.Helper()
	p := clitest.Start(g.t, g.command("run", "-f", g.file("agent.yaml"), "--also", g.file("reviewer.yaml"), "Note what go.mod says."))
	p.Await("approvals approve")
	return p
}

// asked returns the run whose call waits.
func (g *governed) asked() shownApproval {
	g.t.Helper()
	r := g.run("approvals", "list", "--json")
	wantCode(g.t, r, 0)
	var a shownApproval
	if err := json.Unmarshal([]byte(r.Stdout), &a); err != nil {
		g.t.Fatalf("%v: %q", err, r.Stdout)
	}
	return a
}

// TestGovernedExample: the filter stops one call; another waits for a person; the orchestrator is interrupted meanwhile; an
// approval comes from another process; the run goes on, and a sub-agent looks at what was done.
func TestGovernedExample(t *testing.T) {
	t.Parallel()
	g := newGoverned(t)
	p := g.begin()
	p.Interrupt()
	r := p.Wait()
	wantCode(t, r, 130)
	wantInOrder(t, r.Stdout, "DENIED: Files with secrets are not for you.", "asks", "2.0 write_file")
	a := g.asked()
	if a.Call != "2.0" || a.Tool != "write_file" || a.Agent != "clerk" || !strings.Contains(a.Args, "note.txt") {
		t.Errorf("%+v", a)
	}
	wantInOrder(t, r.Stderr, "the run waits", "run --resume "+a.Run+" -f "+g.file("agent.yaml")+" --also "+g.file("reviewer.yaml"), "interrupted")
	note := filepath.Join(g.work, "note.txt")
	if _, err := os.Stat(note); err == nil {
		t.Error("the call ran before anybody approved it")
	}
	wantInOrder(t, g.run("approvals", "show", a.Run, "2.0").Stdout, "clerk", "files/write_file", "note.txt", "bound", "author", a.Digest)
	wantCode(t, g.run("approvals", "approve", a.Run, "2.0", "--as", "ada"), 0)
	r = g.run("approvals", "deny", a.Run, "2.0")
	wantCode(t, r, 1)
	wantInOrder(t, r.Stderr, "decided already", "approved by ada", "nothing is changed")
	r = g.run("run", "--resume", a.Run, "-f", g.file("agent.yaml"), "--also", g.file("reviewer.yaml"))
	wantCode(t, r, 0)
	wantInOrder(t, r.Stdout, "wrote", "subagent_reviewer", "The note is right.", "The note is written and reviewed.")
	if _, err := os.Stat(note); err != nil {
		t.Error(err)
	}
	r = g.run("audit", a.Run)
	wantCode(t, r, 0)
	wantInOrder(t, r.Stdout, "deny no secrets", "ask", "approve", "fit together")
	r = g.run("approvals", "list")
	wantInOrder(t, r.Stdout, "nothing waits for an approval")
}

// TestApprovalsRefused: what is refused does not run, the agent is told why, and goes on.
func TestApprovalsRefused(t *testing.T) {
	t.Parallel()
	g := newGoverned(t)
	p := g.begin()
	a := g.asked()
	wantCode(t, g.run("approvals", "deny", a.Run, "2.0", "--why", "not this file"), 0)
	r := p.Wait()
	wantCode(t, r, 0)
	wantInOrder(t, r.Stdout, "decided", "deny", "DENIED: not this file", "The note is written and reviewed.") // a recording says what it says
	for _, args := range [][]string{{"approve", a.Run, "1.0"}, {"approve", a.Run, "9.9"}, {"show", "nobody", "1.0"}} {
		wantCode(t, g.run(append([]string{"approvals"}, args...)...), 1)
	}
	wantCode(t, g.run("approvals", "approve", a.Run, "one"), 2)
}

// TestApprovalEdited: a person may run the call with other arguments, which pass the same checks.
func TestApprovalEdited(t *testing.T) {
	t.Parallel()
	g := newGoverned(t)
	p := g.begin()
	a := g.asked()
	wantCode(t, g.run("approvals", "approve", a.Run, "2.0", "--args", "[]"), 2)
	wantCode(t, g.run("approvals", "approve", a.Run, "2.0", "--args", `{"path":"other.txt","content":"by hand"}`), 0)
	wantCode(t, p.Wait(), 0)
	if text, err := os.ReadFile(filepath.Join(g.work, "other.txt")); err != nil || string(text) != "by hand" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(g.work, "note.txt")); err == nil {
		t.Error("it ran with the model's arguments too")
	}
}
