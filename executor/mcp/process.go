package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

const (
	endGrace = 2 * time.Second        // for a command to end by itself after its input has ended
	pipeWait = 500 * time.Millisecond // for the end of its standard error after it is dead: a process that left the group may hold it
	maxLine  = 4 << 10                // bytes of a line of standard error that are logged
)

// process is a server's command, the leader of a process group of its own.
type process struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output io.ReadCloser
	done   chan struct{} // closed when the command has ended and is reaped

	mu     sync.Mutex
	reaped bool // its id, and its group's, may be another's
}

// start starts the command. Its standard error is drained into the log.
func start(cfg Config) (*process, error) {
	cmd := exec.Command(cfg.Command[0], cfg.Command[1:]...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr, cmd.WaitDelay = cfg.Dir, environment(cfg), newGroup(), pipeWait
	cmd.Stderr = &lineLog{log: cfg.Logger}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, theirs, err := os.Pipe() // not StdoutPipe, which Wait closes under the reader
	if err != nil {
		return nil, err
	}
	cmd.Stdout = theirs
	err = cmd.Start()
	theirs.Close() // the command has it
	if err != nil {
		input.Close()
		output.Close()
		return nil, fmt.Errorf("start: %w", err)
	}
	p := &process{cmd: cmd, input: input, output: output, done: make(chan struct{})}
	go p.reap() // end waits for it
	return p, nil
}

// reap waits for the end of the command, and then ends what it has left behind.
func (p *process) reap() {
	defer close(p.done)
	if awaitExit(p.cmd.Process.Pid) {
		p.kill()
		p.forget()
	}
	_ = p.cmd.Wait() // how it ended is of no use: a server is not to end
	p.forget()
}

// kill kills the group of the command.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		killGroup(p.cmd)
	}
}

func (p *process) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
}

// end ends the command: first its input, then, after a grace, the whole group.
func (p *process) end() {
	_ = p.input.Close() // it may be closed
	late := time.NewTimer(endGrace)
	defer late.Stop()
	select {
	case <-p.done:
	case <-late.C:
		p.kill()
		<-p.done
	}
	_ = p.output.Close() // its reader ends, whoever else holds the other side
}

// allowed are the variables of this process that every command gets; everything else may be a secret.
var allowed = [...]string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TERM", "TZ", "TMPDIR"}

func environment(cfg Config) []string {
	env := []string{} // not nil, which would be everything
	for _, name := range slices.Concat(allowed[:], cfg.Pass) {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for name, value := range cfg.Env {
		env = append(env, name+"="+value)
	}
	return env
}

// lineLog logs what is written to it, line by line. It is used by one goroutine.
type lineLog struct {
	log  *slog.Logger
	line []byte
}

func (l *lineLog) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		rest = after
		l.line = append(l.line, line[:min(len(line), max(0, maxLine-len(l.line)))]...)
		if ended {
			l.say()
		}
	}
	return len(p), nil
}

func (l *lineLog) say() {
	if len(bytes.TrimSpace(l.line)) > 0 {
		l.log.LogAttrs(context.Background(), slog.LevelDebug, "MCP server says", slog.String("line", schema.CleanText(string(l.line))))
	}
	l.line = l.line[:0]
}
