package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"
)

// terminal is a pseudo terminal of 80 columns with a program in it.
type terminal struct {
	t      *testing.T
	master *os.File
	done   chan error

	mu     sync.Mutex
	screen bytes.Buffer
	wrote  chan struct{} // closed and replaced when something was written
}

// inTerminal starts the program with a terminal as its standard input, output and error.
func inTerminal(t *testing.T, o office, env []string, args ...string) *terminal {
	t.Helper()
	master, slave := openTerminal(t)
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = o.dir, slave, slave, slave
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color"}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close() // the program has its own
	x := &terminal{t: t, master: master, done: make(chan error, 1), wrote: make(chan struct{})}
	var reading sync.WaitGroup
	reading.Go(x.read)
	go func() {
		err := cmd.Wait()
		reading.Wait() // ends with the last user of the terminal
		x.done <- err
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return x
}

func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

func (x *terminal) read() {
	buf := make([]byte, 4096)
	for {
		n, err := x.master.Read(buf)
		x.mu.Lock()
		x.screen.Write(buf[:n])
		close(x.wrote)
		x.wrote = make(chan struct{})
		x.mu.Unlock()
		if err != nil { // EIO: nobody has the terminal open any more
			return
		}
	}
}

func (x *terminal) typeIn(text string) {
	x.t.Helper()
	if _, err := io.WriteString(x.master, text); err != nil {
		x.t.Fatal(err)
	}
}

// await waits until the terminal was sent text n times.
func (x *terminal) await(text string, n int) {
	x.t.Helper()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	for {
		x.mu.Lock()
		found, wrote := strings.Count(ansi.Strip(x.screen.String()), text), x.wrote
		x.mu.Unlock()
		if found >= n {
			return
		}
		select {
		case <-wrote:
		case <-late.C:
			x.t.Fatalf("%q was not shown %d times in:\n%s", text, n, x.text())
		}
	}
}

func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.screen.String()
}

// wait returns what was shown when the program has ended.
func (x *terminal) wait() (shown string, code int) {
	x.t.Helper()
	late := time.NewTimer(60 * time.Second)
	defer late.Stop()
	select {
	case err := <-x.done:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			x.t.Fatal(err)
		}
		if exit != nil {
			code = exit.ExitCode()
		}
	case <-late.C:
		x.t.Fatalf("the program still runs; it showed:\n%s", x.text())
	}
	return x.text(), code
}

func TestATerminalGetsALiveViewWithColour(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, newOffice(t, "replay/RECORDING#task"), nil, "run", "what do my notes say?")
	shown, code := x.wait()
	if code != 0 {
		t.Fatalf("exit code %d:\n%s", code, shown)
	}
	wantInOrder(t, ansi.Strip(shown), "turn 1 · 2 calls", "✓ 1.0 read_file", "buy milk", "✓ 1.1 bash", "turn 2 · the answer", "One note: buy milk.")
	if !strings.Contains(shown, "\x1b[32m✓") {
		t.Errorf("no green check mark in %q", shown)
	}
	if strings.Contains(shown, "\x1b[?2026$p") || strings.Contains(shown, "\x1b[c") {
		t.Errorf("the terminal was asked something, and its answer would be typed into the shell: %q", shown)
	}
	if strings.Contains(shown, "\x1b[?25l") && strings.LastIndex(shown, "\x1b[?25h") < strings.LastIndex(shown, "\x1b[?25l") {
		t.Error("the cursor stays hidden")
	}
}

func TestATerminalWithoutColour(t *testing.T) {
	t.Parallel()
	for name, env := range map[string]string{"NO_COLOR": "NO_COLOR=1", "a dumb terminal": "TERM=dumb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := inTerminal(t, newOffice(t, "replay/RECORDING#task"), []string{env}, "run", "x")
			shown, code := x.wait()
			if code != 0 || strings.Contains(shown, "\x1b[3") || !strings.Contains(shown, "One note: buy milk.") {
				t.Errorf("exit code %d, shown %q; want the answer without colours", code, shown)
			}
			if env == "TERM=dumb" && strings.ContainsRune(shown, '\x1b') {
				t.Errorf("shown %q; want no escape sequences at all", shown)
			}
		})
	}
}

func TestChatOnATerminal(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, newOffice(t, "replay/RECORDING#notes"), nil, "chat")
	x.await("> ", 1)
	x.typeIn("hello\n")
	x.await("What shall I read?", 1)
	x.await("> ", 2)
	x.typeIn("the notes\n")
	x.await("One note: buy milk.", 1)
	x.await("> ", 3)
	x.typeIn("\x04") // Ctrl-D
	if shown, code := x.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, shown)
	}
}

func TestCtrlCOnATerminal(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, newOffice(t, "replay/RECORDING#slow"), nil, "run", "wait")
	x.await("watching note.txt", 1)
	x.typeIn("\x03") // Ctrl-C
	shown, code := x.wait()
	if code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	wantInOrder(t, ansi.Strip(shown), "✗ 1.0 watch_files", "ending, what runs is cancelled", "interrupted")
}

// TestApprovalsOnATerminal: who sits there is asked, asked again after an answer that is none, and may answer with a word.
func TestApprovalsOnATerminal(t *testing.T) {
	t.Parallel()
	for answer, wrote := range map[string]bool{"y": true, "n not this file": false} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			g := newGoverned(t)
			x := inTerminal(t, office{g.work}, nil, "run", "--nats", g.url, "-f", g.file("agent.yaml"), "--also", g.file("reviewer.yaml"), "Note what go.mod says.")
			x.await("approve? 2.0 write_file", 1)
			x.typeIn("perhaps\n")
			x.await("approve? 2.0 write_file", 2)
			x.typeIn(`{"path":5,"content":"x"}` + "\n")
			x.await("nothing is decided: ", 2)
			x.await("approve? 2.0 write_file", 3)
			x.typeIn(answer + "\n")
			x.await("or elsewhere: orchestrator approvals approve ", 1)
			shown, code := x.wait()
			if code != 0 {
				t.Errorf("exit code %d:\n%s", code, shown)
			}
			if strings.Count(shown, "\x1b[?25l") < 2 {
				t.Errorf("the view is not live again after the question:\n%q", shown)
			}
			_, err := os.Stat(filepath.Join(g.work, "note.txt"))
			if (err == nil) != wrote || strings.Contains(shown, "DENIED: not this file") == wrote {
				t.Errorf("the file: %v; shown:\n%s", err, shown)
			}
		})
	}
}

// TestApprovalInAChat: what is typed while a call waits is the answer to its question, and a message again once that is settled,
// here or elsewhere.
func TestApprovalInAChat(t *testing.T) {
	t.Parallel()
	for _, here := range []bool{true, false} {
		t.Run(fmt.Sprintf("here %t", here), func(t *testing.T) {
			t.Parallel()
			g := newGoverned(t)
			x := inTerminal(t, office{g.work}, nil, "chat", "--nats", g.url, "-f", g.file("agent.yaml"), "--also", g.file("reviewer.yaml"))
			x.await("Ctrl-D ends.", 1)
			x.typeIn("Note what go.mod says.\n")
			x.await("or other arguments as JSON > ", 1)
			if here {
				x.typeIn("y\n")
			} else {
				wantCode(t, g.run("approvals", "approve", g.asked().Run, "2.0"), 0)
			}
			x.await("The note is written and reviewed.", 1)
			x.await("\n> ", 2)
			x.typeIn("\x04")
			shown, code := x.wait()
			if code != 0 {
				t.Errorf("exit code %d:\n%s", code, shown)
			}
			if _, err := os.Stat(filepath.Join(g.work, "note.txt")); err != nil {
				t.Error(err)
			}
		})
	}
}
