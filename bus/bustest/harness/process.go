package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus/bustest"
)

// limit bounds every wait for a process.
const limit = 90 * time.Second

// Main builds the program of the package under test, sets *program to its path, runs the tests and ends the process.
func Main(m *testing.M, program *string) {
	code, err := run(m, program)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M, program *string) (int, error) {
	dir, err := os.MkdirTemp("", "jetcrew-test-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) // under the temporary directory, which somebody else cleans too
	*program = filepath.Join(dir, "program.exe")
	if out, err := exec.Command("go", "build", "-o", *program, ".").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build the program under test: %w\n%s", err, out)
	}
	return bustest.Run(m), nil
}

// Command is how a program is started.
type Command struct {
	Program string
	Args    []string
	Dir     string   // default a fresh temporary directory
	Env     []string // beside PATH, HOME and TMPDIR
	Input   string   // standard input
}

// Result is how a process ended.
type Result struct {
	Stdout, Stderr string
	Code           int // -1: by a signal
}

// Process is a running process. It is killed when its test ends.
type Process struct {
	t    testing.TB
	cmd  *exec.Cmd
	done chan struct{}

	mu       sync.Mutex
	out, err bytes.Buffer
	wrote    chan struct{} // closed and replaced at every write
}

// Start starts a process.
func Start(t testing.TB, c Command) *Process {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	p := &Process{t: t, cmd: c.exec(), done: make(chan struct{}), wrote: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &sink{p, &p.out}, &sink{p, &p.err}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the exit code says the same
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // most have ended already
		<-p.done
	})
	return p
}

// exec returns it ready to be started, once its outputs are set.
func (c Command) exec() *exec.Cmd {
	cmd := exec.Command(c.Program, c.Args...)
	cmd.Dir, cmd.Stdin = c.Dir, strings.NewReader(c.Input)
	cmd.Env = append(baseEnv(), c.Env...)
	cmd.WaitDelay = 5 * time.Second
	ownGroup(cmd)
	return cmd
}

// Run starts a process and waits for its end.
func Run(t testing.TB, c Command) Result {
	t.Helper()
	return Start(t, c).Wait()
}

func baseEnv() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "GOCOVERDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// PID returns the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.done }

// Signal sends a signal to the process.
func (p *Process) Signal(sig os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
}

// Interrupt does what the terminal's interrupt key does: the process and its children get the signal.
func (p *Process) Interrupt() {
	p.t.Helper()
	if err := interruptGroup(p.cmd); err != nil {
		p.t.Fatal(err)
	}
}

// Wait waits for the end of the process.
func (p *Process) Wait() Result {
	p.t.Helper()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-p.done:
	case <-late.C:
		_ = p.cmd.Process.Kill() // the test fails anyway
		<-p.done
		r := p.soFar()
		p.t.Fatalf("%v runs after %v; stdout:\n%s\nstderr:\n%s", p.cmd.Args, limit, r.Stdout, r.Stderr)
	}
	r := p.soFar()
	r.Code = p.cmd.ProcessState.ExitCode()
	return r
}

// Await waits until the output, or what goes to standard error, holds text.
func (p *Process) Await(text string) {
	p.t.Helper()
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		p.mu.Lock()
		found := strings.Contains(p.out.String(), text) || strings.Contains(p.err.String(), text)
		wrote := p.wrote
		p.mu.Unlock()
		if found {
			return
		}
		select {
		case <-wrote:
			continue
		case <-p.done:
		case <-late.C:
		}
		r := p.soFar()
		p.t.Fatalf("%v did not say %q; stdout:\n%s\nstderr:\n%s", p.cmd.Args, text, r.Stdout, r.Stderr)
	}
}

// Output returns what the process has written to standard output so far.
func (p *Process) Output() string { return p.soFar().Stdout }

func (p *Process) soFar() Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Result{Stdout: p.out.String(), Stderr: p.err.String()}
}

// sink is one of the outputs of a process.
type sink struct {
	p   *Process
	buf *bytes.Buffer
}

func (s *sink) Write(b []byte) (int, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	close(s.p.wrote)
	s.p.wrote = make(chan struct{})
	return s.buf.Write(b)
}
