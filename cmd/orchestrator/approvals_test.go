package main

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/bus/embedded"
)

// governed is the example of examples/governed, in a directory of its own.
type governed struct {
	t     *testing.T
	work  string // where the tools work
	store string // where the server keeps its data
	srv   *embedded.Server
	url   string // of the server
}

func newGoverned(t *testing.T) *governed {
	t.Helper()
	g := &governed{t: t, work: exampleWork(t), store: t.TempDir()}
	g.serve(0)
	t.Cleanup(func() { g.srv.Stop() })
	g.url = g.srv.URL()
	w := harness.Start(t, harness.Command{Program: program, Args: []string{"worker", "serve", "--nats", g.url, "--queue", "files=4", "--root", g.work}})
	w.Await("files")
	return g
}

// exampleWork is a directory for the tools of the example.
func exampleWork(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example\n\ngo 1.26\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// serve starts the server on its store; port 0 is a free one.
func (g *governed) serve(port int) {
	g.t.Helper()
	var err error
	if g.srv, err = embedded.Start(embedded.Config{Dir: g.store, Port: port}); err != nil {
		g.t.Fatal(err)
	}
}

// restart ends the server and starts it again at its address.
func (g *governed) restart() {
	g.t.Helper()
	at, err := url.Parse(g.url)
	if err != nil {
		g.t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		g.t.Fatal(err)
	}
	g.srv.Stop()
	g.serve(port)
}

func (g *governed) command(args ...string) harness.Command {
	return harness.Command{Program: program, Args: append(args, "--nats", g.url)}
}

func (g *governed) run(args ...string) harness.Result {
	g.t.Helper()
	return harness.Run(g.t, g.command(args...))
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
func (g *governed) begin() *harness.Process {
	g.t.Helper()
	p := harness.Start(g.t, g.command("run", "-f", g.file("agent.yaml"), "--also", g.file("reviewer.yaml"), "Note what go.mod says."))
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

// TestGovernedExample: the filter stops one call; another waits for a person; the orchestrator is interrupted meanwhile, and the
// server restarted; an approval comes from another process; the server is restarted once more; the run goes on, and a sub-agent
// looks at what was done.
func TestGovernedExample(t *testing.T) {
	t.Parallel()
	g := newGoverned(t)
	p := g.begin()
	p.Interrupt()
	r := p.Wait()
	wantCode(t, r, 130)
	wantInOrder(t, r.Stdout, "DENIED: Files with secrets are not for you.", "asks", "2.0 write_file")
	g.restart()
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
	g.restart()
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
	for args, why := range map[string]string{
		"": "it is empty", "[]": "must be an object", `{"path":"other.txt"}`: "content", `{"path":5,"content":"x"}`: "path", `{"path":"other.txt","content":"x","mode":1}`: "mode",
	} {
		r := g.run("approvals", "approve", a.Run, "2.0", "--args", args)
		wantCode(t, r, 2)
		wantInOrder(t, r.Stderr, "--args", why)
	}
	if now := g.asked(); now.Digest != a.Digest {
		t.Errorf("%+v, want that %+v is still asked", now, a)
	}
	wantCode(t, g.run("approvals", "approve", a.Run, "2.0", "--args", `{"path":"other.txt","content":"by hand"}`), 0)
	wantCode(t, p.Wait(), 0)
	if text, err := os.ReadFile(filepath.Join(g.work, "other.txt")); err != nil || string(text) != "by hand" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(g.work, "note.txt")); err == nil {
		t.Error("it ran with the model's arguments too")
	}
}

// TestApprovalOverARestartOfTheServer: who waits for a verdict while the server goes away and comes back gets it.
func TestApprovalOverARestartOfTheServer(t *testing.T) {
	t.Parallel()
	g := newGoverned(t)
	p := g.begin()
	g.restart()
	a := g.asked()
	wantCode(t, g.run("approvals", "approve", a.Run, "2.0"), 0)
	r := p.Wait()
	wantCode(t, r, 0)
	wantInOrder(t, r.Stdout, "decided", "approve", "The note is written and reviewed.")
}

// TestApprovalInADirectory: what waits in a directory of one's own is answered from elsewhere by its name, while the command that asks
// runs, and after it was killed with its server.
func TestApprovalInADirectory(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]bool{"the command runs": false, "it was killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &governed{t: t, work: exampleWork(t)}
			o, data := office{g.work}, filepath.Join(t.TempDir(), "data")
			p := harness.Start(t, o.command("run", "--data", data, "--workers", "1", "-f", g.file("agent.yaml"), "--also", g.file("reviewer.yaml"), "Note what go.mod says."))
			p.Await(" 2.0 --data " + data)
			_, line, _ := strings.Cut(p.Output(), "orchestrator approvals approve ")
			line, _, _ = strings.Cut(line, "\n")
			if killed {
				p.Signal(os.Kill)
				p.Wait()
			}
			wantCode(t, o.run(t, append([]string{"approvals", "approve"}, strings.Fields(line)...)...), 0)
			r := harness.Result{}
			if run, _, _ := strings.Cut(line, " "); killed {
				r = o.run(t, "run", "--data", data, "--workers", "1", "--resume", run, "-f", g.file("agent.yaml"), "--also", g.file("reviewer.yaml"))
			} else {
				r = p.Wait()
			}
			wantCode(t, r, 0)
			wantInOrder(t, r.Stdout, "wrote", "The note is written and reviewed.")
			wantInOrder(t, o.run(t, "approvals", "list", "--data", data).Stdout, "nothing waits for an approval")
		})
	}
}
