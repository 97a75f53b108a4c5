package toolkit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/jetcrew/jetcrew/executor/toolkit"
	"github.com/jetcrew/jetcrew/schema"
)

func TestBashRules(t *testing.T) {
	t.Parallel()
	k := newTools(t, "shell", nil)
	for _, tt := range []struct {
		args, want string
		typ        schema.ErrorType
	}{
		{`{}`, "command", schema.InvalidArguments},
		{`{"command":" \n"}`, "command", schema.InvalidArguments},
		{`{"action":"exec"}`, "command", schema.InvalidArguments},
		{`{"action":"start","processId":"1"}`, "command", schema.InvalidArguments},
		{`{"action":"status"}`, "processId", schema.InvalidArguments},
		{`{"action":"logs","processId":""}`, "processId", schema.InvalidArguments},
		{`{"action":"stop","command":"x"}`, "processId", schema.InvalidArguments},
		{`{"action":"write","input":"x"}`, "processId", schema.InvalidArguments},
		{`{"action":"EXEC","command":"x"}`, "action", schema.InvalidArguments},
		{`{"action":"kill","command":"x"}`, "action", schema.InvalidArguments},
		{`{"cmd":"x"}`, "command", schema.InvalidArguments},
		{`{"command":"x","timeoutMillis":0}`, "timeoutMillis", schema.InvalidArguments},
		{`{"action":"list"}`, "action list is not offered here; use exec", schema.ToolFailed},
		{`{"action":"start","command":"x"}`, "action start is not offered here; use exec", schema.ToolFailed},
		{`{"action":"status","processId":"1","command":""}`, "action status is not offered here; use exec", schema.ToolFailed},
	} {
		if got := k.fails("bash", tt.args); got.Type != tt.typ || !strings.Contains(got.Message, tt.want) {
			t.Errorf("%s: %v, want %s naming %q", tt.args, got, tt.typ, tt.want)
		}
	}
}

func TestBash(t *testing.T) {
	t.Parallel()
	k := newTools(t, "shell", nil)
	dir, err := filepath.EvalSymlinks(k.dir)
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		`{"command":"echo out; echo err >&2"}`:                       "out\nerr\n",
		`{"action":"exec","command":"pwd -P"}`:                       dir + "\n",
		`{"command":"cat; echo end"}`:                                "end\n",
		`{"command":"true"}`:                                         "",
		`{"command":"printf 'a\\000b\\377c'"}`:                       "a\uFFFDb\uFFFDc",
		`{"command":"sleep 1000 & echo now","timeoutMillis":100000}`: "now\n",
	} {
		if got := k.ok("bash", args); got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
	for args, want := range map[string]string{
		`{"command":"exit 3"}`:                                    "exit status 3, no output",
		`{"command":"echo one; echo why >&2; exit 1"}`:            "exit status 1, output:\none\nwhy",
		`{"command":"kill -9 $$"}`:                                "signal: killed, no output",
		`{"command":"nonexistent-command-x 2>/dev/null"}`:         "exit status 127, no output",
		`{"command":"echo first; seq 100000; echo last; exit 2"}`: "",
	} {
		got := k.fails("bash", args)
		if got.Type != schema.ToolFailed || want != "" && got.Message != want+strings.Repeat("\n", strings.Count(want, "why")) {
			t.Errorf("%s: got %v, want %q", args, got, want)
		}
		if want == "" && (!strings.HasPrefix(got.Message, "exit status 2") || !strings.HasSuffix(got.Message, "100000\nlast\n") || len(got.Message) > 4<<10) {
			t.Errorf("%s: got %d bytes, %.40q", args, len(got.Message), got.Message)
		}
	}
}

// keeper is an attempt that looks at what it is to keep and forgets it.
type keeper struct {
	size int64
	last string // bytes
	err  error
}

func (*keeper) Number() uint64 { return 1 }

func (k *keeper) Keep(whole io.ReadSeeker) error {
	var err error
	if k.size, err = io.Copy(io.Discard, whole); err != nil {
		return err
	}
	if _, err = whole.Seek(max(0, k.size-6), io.SeekStart); err != nil {
		return err
	}
	last, err := io.ReadAll(whole)
	k.last = string(last)
	return errors.Join(err, k.err)
}

// TestC07OutputIsBounded: head and tail are the output, the whole is kept, and none of it is in memory.
func TestC07OutputIsBounded(t *testing.T) {
	k := newTools(t, "shell", nil)
	const long = `echo first; yes 🙂 | head -c %d; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo last`
	for name, tt := range map[string]struct {
		bytes int
		err   error // of the store
		want  int64 // bytes kept
		mark  string
	}{
		"kept":     {10_000_000, nil, 11_000_012, `bytes left out here; read_output {"call":"1.0","offset":327`},
		"too much": {100_000_000, nil, schema.MaxPayload, "reads them up to byte 67108864, the rest is not kept"},
		"no store": {10_000_000, errors.New("down"), 11_000_012, " bytes omitted ...]"},
	} {
		t.Run(name, func(t *testing.T) {
			keep := &keeper{err: tt.err}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := k.exec(schema.WithAttempt(t.Context(), keep), "bash", `{"command":"`+fmt.Sprintf(long, tt.bytes)+`"}`)
			runtime.ReadMemStats(&after)
			if got := r.Output; !r.OK || len(got) > 65<<10 || !strings.HasPrefix(got, "first\n🙂\n") || !strings.HasSuffix(got, "x\nlast\n") || !strings.Contains(got, tt.mark) || !utf8.ValidString(got) {
				t.Errorf("%t, %d bytes, %.60q", r.OK, len(got), got)
			}
			if keep.size != tt.want || tt.want < schema.MaxPayload && keep.last != "\nlast\n" {
				t.Errorf("%d bytes are kept, the last %q", keep.size, keep.last)
			}
			if all := int64(after.TotalAlloc) - int64(before.TotalAlloc); all > 20<<20 {
				t.Errorf("%d bytes were allocated", all)
			}
		})
	}
	keep := &keeper{}
	if k.exec(schema.WithAttempt(t.Context(), keep), "bash", `{"command":"seq 1000"}`); keep.size != 0 {
		t.Errorf("%d bytes of a short output are kept", keep.size)
	}
}

// TestC07LongOutputOfAFailure: the model reads the end, and where the rest is.
func TestC07LongOutputOfAFailure(t *testing.T) {
	t.Parallel()
	k := newTools(t, "shell", nil)
	for args, how := range map[string]string{
		`{"command":"seq 100000; echo why >&2; exit 2"}`:                         "exit status 2",
		`{"command":"seq 100000; echo why; exec sleep 100","timeoutMillis":500}`: "the command was killed",
	} {
		keep := &keeper{}
		r := k.exec(schema.WithAttempt(t.Context(), keep), "bash", args)
		if r.OK || !strings.Contains(r.Error.Message, how+`, read_output {"call":"1.0"} reads its output, output:`) || !strings.HasSuffix(r.Error.Message, "100000\nwhy\n") || keep.size < 500_000 {
			t.Errorf("%s: %d kept, %.200v", args, keep.size, r.Error)
		}
	}
}

func TestD28EnvironmentIsAllowed(t *testing.T) {
	for name, value := range map[string]string{"OPENAI_API_KEY": "sk-planted", "NATS_URL": "nats://user:planted@x", "JETCREW_X": "planted", "BASH_ENV": "/planted", "EXTRA": "wanted", "LANG": "C"} {
		t.Setenv(name, value)
	}
	k := newTools(t, "shell", nil)
	kit, err := toolkit.Shell(k.dir, toolkit.ShellConfig{Env: []string{"EXTRA"}})
	if err != nil {
		t.Fatal(err)
	}
	k.use(kit)
	got := k.ok("bash", `{"command":"env; export -p; cat /proc/self/environ"}`)
	if strings.Contains(got, "planted") || !strings.Contains(got, "EXTRA=wanted") || !strings.Contains(got, "LANG=C") || !strings.Contains(got, "PWD="+k.dir) {
		t.Errorf("environment: %s", got)
	}
}

// pidSink is a progress sink that hands out the process id a command prints.
func pidSink(ctx context.Context) (context.Context, <-chan int) {
	pids := make(chan int, 1)
	var once sync.Once
	return schema.WithProgress(ctx, func(s string) {
		if pid, err := strconv.Atoi(strings.TrimSpace(s)); err == nil {
			once.Do(func() { pids <- pid })
		}
	}), pids
}

// awaitGone waits for the event that the process has ended.
func awaitGone(t *testing.T, fd int) {
	t.Helper()
	defer unix.Close(fd)
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 10_000)
		if err == unix.EINTR {
			continue
		}
		if n != 1 || err != nil {
			t.Errorf("the process still runs: %v", err)
		}
		return
	}
}

func TestBashKillsTheWholeGroup(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, args string
		end        func(context.CancelFunc)
		want       schema.ErrorType
		text       string
	}{
		{"cancelled", `{"command":"sh -c 'sleep 1000 & echo $!; wait' & wait"}`, func(cancel context.CancelFunc) { cancel() }, schema.Cancelled, "the call was cancelled; it may have taken effect: the command was killed, output:\n"},
		{"timeoutMillis", `{"command":"trap '' TERM INT HUP; sh -c 'sleep 1000 & echo $!; wait' & wait","timeoutMillis":1000}`, func(context.CancelFunc) {}, schema.Timeout, "timeoutMillis of 1s passed: the command was killed, output:\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := newTools(t, "shell", nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ctx, pids := pidSink(ctx)
			done := make(chan schema.Result, 1)
			go func() { done <- k.exec(ctx, "bash", tt.args) }()
			pid := <-pids
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				t.Fatal(err)
			}
			tt.end(cancel)
			r := <-done
			awaitGone(t, fd)
			if r.OK || r.Error.Type != tt.want || !strings.HasPrefix(r.Error.Message, tt.text+strconv.Itoa(pid)) {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestBashLeavesNothingInTheBackground(t *testing.T) {
	t.Parallel()
	k := newTools(t, "shell", nil)
	if err := unix.Mkfifo(filepath.Join(k.dir, "go"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, pids := pidSink(t.Context())
	done := make(chan schema.Result, 1)
	go func() { done <- k.exec(ctx, "bash", `{"command":"sleep 1000 & echo $!; read x < go"}`) }()
	fd, err := unix.PidfdOpen(<-pids, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(k.dir, "go"), []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	if r := <-done; !r.OK {
		t.Errorf("got %+v", r)
	}
	awaitGone(t, fd)
}
