package session

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"
)

// Process is a worker process. It is safe for concurrent use.
type Process struct {
	PID      int
	Instance string // id under which the worker is in the catalog and in results

	queues  int // that it serves
	cmd     *exec.Cmd
	stdin   io.Closer // its end tells the worker that its parent is gone
	stderr  *tail
	ending  atomic.Bool // somebody here asked it to end
	done    chan struct{}
	waitErr error // valid once done is closed
}

// start runs the program. Whatever happens to this process, the worker notices: its standard input ends.
func (f *Fleet) start(instance string, args []string) (*Process, error) {
	cmd := exec.Command(f.program, args...)
	cmd.Env = f.env
	p := &Process{Instance: instance, cmd: cmd, stderr: &tail{}, done: make(chan struct{})}
	if f.verbose {
		p.stderr.to = os.Stderr
	}
	cmd.Stderr = p.stderr
	cmd.WaitDelay = time.Second // a grandchild may hold on to the pipe
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.PID = cmd.Process.Pid
	// The pipe takes the line without waiting for a reader; a worker that has died already is noticed by its end.
	_, _ = io.WriteString(stdin, f.input)
	go f.wait(p)
	return p, nil
}

func (f *Fleet) wait(p *Process) {
	p.waitErr = p.cmd.Wait()
	if !p.ending.Load() {
		f.log.Warn("a worker ended by itself", "pid", p.PID, "instance", p.Instance, "error", p.failure())
	}
	close(p.done)
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Kill ends the process at once, by SIGKILL where there are signals, and returns when it has ended.
func (p *Process) Kill() error {
	p.ending.Store(true)
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill worker %d: %w", p.PID, err)
	}
	<-p.done
	_ = p.stdin.Close() // its reader is gone
	return nil
}

// Stop lets the process drain and returns when it has ended; after 10 s it is killed. It is safe to call twice.
func (p *Process) Stop() {
	p.ending.Store(true)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		_ = p.stdin.Close() // no signals here: the end of its input ends a worker too
	}
	late := time.NewTimer(stopWithin)
	defer late.Stop()
	select {
	case <-p.done:
		_ = p.stdin.Close() // its reader is gone
	case <-late.C:
		_ = p.Kill() // all that is left to do; a process that cannot be killed is the system's
	}
}

// failure says how the process ended and what it said last.
func (p *Process) failure() error {
	return fmt.Errorf("%w%s", cmp.Or(p.waitErr, errors.New("exit status 0")), p.said())
}

// said returns what the process wrote last, as a part of a message.
func (p *Process) said() string {
	if text := p.stderr.String(); text != "" {
		return "; it said:\n" + text
	}
	return ""
}
