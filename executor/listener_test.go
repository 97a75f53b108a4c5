package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

// ear writes down what it hears.
type ear struct {
	mu    sync.Mutex
	name  string
	heard []string
}

func (e *ear) Start(_ context.Context, c *schema.Call) {
	e.note("%sstart %s %s", e.name, c.Tool, c.Args)
}

func (e *ear) Complete(_ context.Context, c *schema.Call, r schema.Result, took time.Duration) {
	class := schema.ErrorType("")
	if r.Error != nil {
		class = r.Error.Type
	}
	e.note("%scomplete %s %v %s %v", e.name, c.Tool, r.OK, class, took)
}

func (e *ear) note(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = append(e.heard, fmt.Sprintf(format, args...))
}

// deafening panics at every word.
type deafening struct{}

func (deafening) Start(context.Context, *schema.Call) { panic("start") }
func (deafening) Complete(context.Context, *schema.Call, schema.Result, time.Duration) {
	panic("complete")
}

// meddling tries to change what it observes.
type meddling struct{}

func (meddling) Start(_ context.Context, c *schema.Call) { c.Tool, c.Args = "other", `{"x":1}` }
func (meddling) Complete(_ context.Context, c *schema.Call, r schema.Result, _ time.Duration) {
	c.Run, r.OK, r.Output = "other", true, "fine"
	if r.Error != nil {
		r.Error.Message = "nothing"
	}
}

func TestListenerRegisterToolsHearsEveryEnd(t *testing.T) {
	t.Parallel()
	again := executor.Transient(errors.New("busy"), time.Second)
	tests := []struct {
		tool executor.Tool
		want string
	}{
		{says("ok", "fine"), "complete ok true  0s"},
		{fails("fails", errors.New("exit status 1")), "complete fails false ToolFailed 0s"},
		{hangs("slow", executor.Timeout(5*time.Second)), "complete slow false Timeout 5s"},
		{text("panics", func(context.Context) (string, error) { panic("oh") }), "complete panics false Panic 0s"},
		{fails("again", again, executor.Idempotent()), "complete again false ToolFailed 0s"},
	}
	for _, tt := range tests {
		t.Run(tt.tool.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &ear{}
				c := call(tt.tool.Name, " {} ")
				c.Idempotent = true
				quiet(t, tt.tool).With(executor.NewListening(e).Wrap).Execute(t.Context(), c)
				if diff := cmp.Diff([]string{"start " + tt.tool.Name + " {}", tt.want}, e.heard); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// A wrapper inside the listener that panics ends the call, and the listener hears of it.
func TestListenerHearsOfAPanicBelow(t *testing.T) {
	t.Parallel()
	e := &ear{}
	panics := func(executor.Execute) executor.Execute {
		return func(context.Context, *schema.Call) (schema.Result, *schema.Pending) { panic("wrapper") }
	}
	got := execute(t, quiet(t, says("ok", "")).With(executor.NewListening(e).Wrap, panics), call("ok", ""))
	if got.Type != schema.Panic || len(e.heard) != 2 || !strings.HasPrefix(e.heard[1], "complete ok false Panic") {
		t.Errorf("got %+v, heard %q", got, e.heard)
	}
}

func TestListenerChangesNothing(t *testing.T) {
	t.Parallel()
	set := quiet(t, says("ok", "fine"), fails("fails", errors.New("broken"))).With(executor.NewListening(meddling{}).Wrap)
	for tool, want := range map[string]outcome{"ok": {OK: true, Output: "fine"}, "fails": {Type: schema.ToolFailed, Output: "broken"}} {
		if got := execute(t, set, call(tool, "")); got != want {
			t.Errorf("%s: got %+v, want %+v", tool, got, want)
		}
	}
}

func TestListenerPanicsAreLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	place := &executor.Listening{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	place.Replace(deafening{})
	if got, want := execute(t, quiet(t, says("ok", "fine")).With(place.Wrap), call("ok", "")), (outcome{OK: true, Output: "fine"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	place.Start(t.Context(), call("ok", ""))
	place.Complete(t.Context(), call("ok", ""), schema.Result{}, 0)
	for _, want := range []string{"panic=start", "panic=complete", "tool=ok", "call=r1/2.3", "listener_test.go"} {
		if strings.Count(log.String(), want) < 2 {
			t.Errorf("log lacks %q twice: %s", want, log.String())
		}
	}
}

func TestListenersRegisterToolsComposite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := &ear{}
		a, b := &ear{name: "a "}, &ear{name: "b "}
		both := executor.Listeners{a, deafening{}, b, shared}
		execute(t, quiet(t, says("ok", "")).With(executor.NewListening(both).Wrap), call("ok", ""))
		for _, e := range []*ear{a, b, shared} {
			want := []string{e.name + "start ok {}", e.name + "complete ok true  0s"}
			if diff := cmp.Diff(want, e.heard); diff != "" {
				t.Error(diff)
			}
		}
	})
}

// Who heard the start of a call hears its end, also when another listener came meanwhile.
func TestListenerIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := &ear{}, &ear{}
		var place executor.Listening
		set := quiet(t, text("swap", func(context.Context) (string, error) { place.Replace(second); return "", nil }), says("ok", "")).With(place.Wrap)
		execute(t, set, call("ok", ""))
		place.Replace(first)
		execute(t, set, call("swap", ""))
		execute(t, set, call("ok", ""))
		place.Replace(nil)
		execute(t, set, call("ok", ""))
		if diff := cmp.Diff([]string{"start swap {}", "complete swap true  0s"}, first.heard); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"start ok {}", "complete ok true  0s"}, second.heard); diff != "" {
			t.Error(diff)
		}
	})
}

// A call that authority, or a wrapper outside, stops never reaches the listener.
func TestListenerHearsNothingOfStoppedCalls(t *testing.T) {
	t.Parallel()
	e := &ear{}
	set := quiet(t, says("ok", "")).With(executor.NewListening(e).Wrap)
	c := call("ok", "")
	c.Principal.Scopes = []string{"tool:other"}
	if got := execute(t, set, c); got.Type != schema.Denied || len(e.heard) != 0 {
		t.Errorf("got %+v, heard %q", got, e.heard)
	}
}
