package worker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/schema"
)

// farm is a server, an owner of calls, and a directory that hostile workers share.
type farm struct {
	*bus.Bus
	srv *bustest.Servers
	dir string
	run string
}

func newFarm(t *testing.T) *farm {
	t.Helper()
	srv := bustest.Server(t)
	return &farm{Bus: bustest.Connect(t, srv), srv: srv, dir: t.TempDir(), run: schema.NewID()}
}

// command is the command line of a hostile worker, at a server.
func (f *farm) command(url string, args ...string) (program string, line []string) {
	return os.Args[0], append([]string{"hostile", "--dir", f.dir, "--nats", url}, args...)
}

// worker starts a hostile worker.
func (f *farm) worker(t *testing.T, args ...string) *harness.Process {
	t.Helper()
	program, line := f.command(f.srv.URL(), args...)
	return harness.Start(t, harness.Command{Program: program, Args: line})
}

// supervise keeps one hostile worker running until the test ends: whenever it dies it is started anew.
func (f *farm) supervise(t *testing.T, args ...string) *harness.Kept {
	t.Helper()
	program, line := f.command(f.srv.URL(), args...)
	return harness.Keep(t, harness.Command{Program: program, Args: line})
}

// call makes call index of the run and returns its result when it is there.
func (f *farm) call(t *testing.T, index int, tool string, o order, within time.Duration) func() schema.Result {
	t.Helper()
	got := make(chan schema.Result, 1)
	f.Start(schema.Dispatch{
		Ctx: context.Background(), Call: f.called(index, tool, o), Queue: hostileQueue, Within: within,
		Done: func(r schema.Result, err error) {
			if err != nil {
				t.Errorf("%s %s: %v", tool, o.ID, err)
			}
			got <- r
		},
	})
	return func() schema.Result { return <-got } // the deadline bounds it
}

func (f *farm) called(index int, tool string, o order) *schema.Call {
	c := bustest.Call(f.run, tool, index)
	c.Idempotent = !strings.HasSuffix(tool, "_once") && tool != "fails"
	c.Args = schema.JSONText(fmt.Sprintf(`{"id":%q,"ms":%d}`, o.ID, o.MS))
	return c
}

// starts returns the lines of the ledger about an id: the key and the delivery of each start.
func (f *farm) starts(t *testing.T, id string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, ledgerName))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, id+" "); ok {
			lines = append(lines, strings.TrimSuffix(rest, "\n"))
		}
	}
	return lines
}

func (f *farm) awaitStart(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		bustest.Eventually(t, id+" starts", func() bool { return len(f.starts(t, id)) > 0 })
	}
}

// letters returns the calls among the dead letters.
func (f *farm) letters(t *testing.T) (calls []string) {
	t.Helper()
	for l, err := range f.DeadLetters(t.Context()) {
		if err != nil || l.Call == nil {
			t.Fatalf("dead letter %+v, %v", l, err)
		}
		calls = append(calls, l.Call.String())
	}
	return calls
}

// open opens the gate of an id.
func (f *farm) open(t *testing.T, id string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, "go."+id), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantOneStart fails the test unless the call index that writes id has started once, in its first delivery.
func (f *farm) wantOneStart(t *testing.T, index int, id string) {
	t.Helper()
	if got, want := f.starts(t, id), fmt.Sprintf("%s/1.%d 1", f.run, index); len(got) != 1 || got[0] != want {
		t.Errorf("%s: starts %q, want %q only", id, got, want)
	}
}

func wantError(t *testing.T, r schema.Result, want schema.ErrorType) {
	t.Helper()
	if r.OK || r.Error == nil || r.Error.Type != want {
		t.Errorf("%+v, want %s", r, want)
	}
}
