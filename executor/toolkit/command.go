package toolkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// failedTail is how much of the output stands in the error of a failed command, in bytes: what the model reads of
	// an error is bounded.
	failedTail = 3 << 10
	// pipeWait is how long to wait for the output's end after the command's group is dead: a process that left the
	// group may hold the pipe for ever.
	pipeWait = 500 * time.Millisecond
)

// exec runs one command to its end or to that of ctx, or to that of limited, which is ctx with less time.
func (s *shell) exec(ctx, limited context.Context, command string) (string, error) {
	out := newOutput(ctx, s.max)
	defer out.close()
	cmd := exec.CommandContext(limited, s.path, "-c", command)
	cmd.Dir, cmd.Env = s.dir, s.env
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = newGroup()
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmd.WaitDelay = pipeWait
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start: %w", err)
	}
	endGroup(cmd.Process.Pid)
	err := cmd.Wait()
	text, kept := out.end()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return text, nil
	}
	how := err.Error() // exit status 1, signal: killed
	if limited.Err() != nil {
		how = "the command was killed"
	}
	return "", failed(how+kept, lastText(text, failedTail))
}

// failed says how the command ended and what it last had to say.
func failed(how, tail string) error {
	if strings.TrimSpace(tail) == "" {
		return errors.New(how + ", no output")
	}
	return errors.New(how + ", output:\n" + tail)
}

// allowed are the variables of the worker's environment that commands get; everything else may be a secret.
var allowed = [...]string{"PATH", "HOME", "LANG", "LC_ALL", "TERM", "TZ", "TMPDIR"}

func environment(dir string, more []string) []string {
	env := []string{"PWD=" + dir}
	for _, name := range slices.Concat(allowed[:], more) {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func workDir(root string) (string, error) {
	dir, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s: is not a directory", dir)
	}
	return dir, nil
}
