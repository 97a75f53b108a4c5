package harness

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Kept is a process that is started again whenever it ends, until it is stopped. It is safe for concurrent use.
type Kept struct {
	command Command
	log     tail

	mu      sync.Mutex
	cmd     *exec.Cmd
	stopped bool
	starts  int
	after   time.Duration // before it is started again
	ended   sync.WaitGroup
}

// Keep starts a process that is killed when the test ends.
func Keep(t testing.TB, c Command) *Kept {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	p := &Kept{command: c}
	if err := p.launch(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(os.Kill) })
	return p
}

// launch starts the process and sees to it that it is started again.
func (p *Kept) launch() error {
	cmd := p.command.exec()
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd = cmd
	p.starts++
	p.ended.Go(func() { p.relaunch(cmd) })
	return nil
}

func (p *Kept) relaunch(cmd *exec.Cmd) {
	_ = cmd.Wait() // it was killed, or killed itself
	p.mu.Lock()
	after := p.after
	p.after = 0
	p.mu.Unlock()
	pause := time.NewTimer(after)
	defer pause.Stop()
	<-pause.C
	if err := p.launch(); err != nil {
		p.log.add("not started again: " + err.Error() + "\n")
	}
}

// Signal sends sig; after it is how long the process stays away if it ends by it.
func (p *Kept) Signal(sig os.Signal, after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = after
	_ = p.cmd.Process.Signal(sig) // it may have ended by itself
}

// Pause has the process stand still for a while, and returns when it goes on. Whoever is killed meanwhile stays dead.
func (p *Kept) Pause(d time.Duration) {
	p.mu.Lock()
	process := p.cmd.Process
	p.mu.Unlock()
	if suspend(process) != nil {
		return
	}
	time.Sleep(d)
	_ = resume(process) // it may have been killed
}

// Stop ends the process for good and waits for it.
func (p *Kept) Stop(sig os.Signal) {
	p.mu.Lock()
	p.stopped = true
	err := p.cmd.Process.Signal(sig)
	p.mu.Unlock()
	if err == nil || errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
		p.ended.Wait()
	}
}

// Starts returns how often it was started.
func (p *Kept) Starts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starts
}

// Log returns the end of what it has said, in all its lives.
func (p *Kept) Log() string {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	return p.log.buf.String()
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const tailSize = 64 << 10

func (t *tail) Write(data []byte) (int, error) {
	t.add(string(data))
	return len(data), nil
}

func (t *tail) add(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.WriteString(text)
	if t.buf.Len() > 2*tailSize {
		t.buf.Next(t.buf.Len() - tailSize)
	}
}
