package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

func hangs(name string, opts ...executor.Option) executor.Tool {
	return text(name, func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }, opts...)
}

// quiet is a set whose log goes nowhere.
func quiet(t testing.TB, tools ...executor.Tool) *executor.Set {
	t.Helper()
	set, err := executor.Config{Queue: "test", Logger: slog.New(slog.DiscardHandler)}.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestD03EachCallItsOwnOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := quiet(t, says("ok", "fine"), fails("exit", errors.New("exit status 1")), hangs("slow", executor.Timeout(5*time.Second)),
			text("panic", func(context.Context) (string, error) { panic("no connection") }), says("ok2", "fine too"))
		got := make([]outcome, 5)
		var wg sync.WaitGroup
		for i, name := range []string{"ok", "exit", "slow", "panic", "ok2"} {
			wg.Go(func() { got[i] = execute(t, set, call(name, "")) })
		}
		wg.Wait()
		want := []outcome{
			{OK: true, Output: "fine"},
			{Type: schema.ToolFailed, Output: "exit status 1"},
			{Type: schema.Timeout, Output: "no result within the tool's time limit of 5s; it may have taken effect"},
			{Type: schema.Panic, Output: "the tool panicked: no connection"},
			{OK: true, Output: "fine too"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestC13PanicAndGoexit(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	set, err := executor.Config{Queue: "test", Logger: slog.New(slog.NewTextHandler(&log, nil))}.NewSet(
		text("panic", func(context.Context) (string, error) { panic("broken\nstack follows") }),
		text("error", func(context.Context) (string, error) { panic(fmt.Errorf("orders: %w", errors.New("closed"))) }),
		text("map", func(context.Context) (string, error) { nilMap()["a"] = 1; return "", nil }),
		text("nil", func(context.Context) (string, error) { var p *city; return p.Name, nil }),
		text("type", func(context.Context) (string, error) { var v any = 1; return v.(string), nil }),
		text("panic(nil)", func(context.Context) (string, error) { panic(nil) }), //nolint:govet // what a tool may do
		text("goexit", func(context.Context) (string, error) { runtime.Goexit(); return "", nil }),
		executor.Func("render", "Renders.", func(context.Context, struct{}) (evil, error) { return evil{}, nil }),
		text("badError", func(context.Context) (string, error) { return "", (*evil)(nil) }),
		text("badUnwrap", func(context.Context) (string, error) { return "", evilUnwrap{} }),
		text("transient", func(context.Context) (string, error) { panic(executor.Transient(errors.New("later"), 0)) }, executor.Idempotent()),
		says("ok", "fine"))
	if err != nil {
		t.Fatal(err)
	}
	const hidden = "the tool panicked; its worker's log says where"
	tests := []struct {
		tool string
		want outcome
	}{
		{"panic", outcome{Type: schema.Panic, Output: "the tool panicked: broken"}},
		{"error", outcome{Type: schema.Panic, Output: "the tool panicked: orders: closed"}},
		{"map", outcome{Type: schema.Panic, Output: hidden}},
		{"nil", outcome{Type: schema.Panic, Output: hidden}},
		{"type", outcome{Type: schema.Panic, Output: hidden}},
		{"panic(nil)", outcome{Type: schema.Panic, Output: hidden}},
		{"goexit", outcome{Type: schema.Panic, Output: "the tool ended its goroutine without a result"}},
		{"render", outcome{Type: schema.Panic, Output: "the tool panicked: render"}},
		{"badError", outcome{Type: schema.ToolFailed, Output: "<nil>"}},
		{"badUnwrap", outcome{Type: schema.Panic, Output: "the tool panicked: unwrap"}},
		{"transient", outcome{Type: schema.Panic, Output: "the tool panicked: later"}},
		{"ok", outcome{OK: true, Output: "fine"}},
	}
	for _, tt := range tests {
		c := call(tt.tool, "")
		c.Idempotent = true
		if got := execute(t, set, c); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.tool, got, tt.want)
		}
	}
	for _, want := range []string{"guard_test.go", "tool=map", "call=r1/2.3", "assignment to entry in nil map"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log lacks %q", want)
		}
	}
}

func nilMap() map[string]int { return nil }

type evil struct{}

func (evil) MarshalJSON() ([]byte, error) { panic("render") }

func (e *evil) Error() string { return fmt.Sprint(*e) }

type evilUnwrap struct{}

func (evilUnwrap) Error() string { return "evil" }
func (evilUnwrap) Unwrap() error { panic("unwrap") }

func TestD06HangingAndFailing(t *testing.T) {
	t.Parallel()
	reason := &schema.Error{Type: schema.Cancelled, Message: "the run was stopped"}
	limit, idempotent := executor.Timeout(time.Second), executor.Idempotent()
	deaf := text("deaf", func(context.Context) (string, error) { time.Sleep(time.Hour); return "late", nil }, limit, idempotent)
	late := text("late", func(ctx context.Context) (string, error) { <-ctx.Done(); time.Sleep(time.Second); return "done", nil }, limit)
	says := text("says", func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", errors.New("was at line 7")
	}, limit, idempotent)
	tests := []struct {
		name  string
		tool  executor.Tool
		ctx   func(context.Context) (context.Context, context.CancelFunc)
		call  int64 // timeout_ms of the call
		want  outcome
		after time.Duration
	}{
		{"own timeout", hangs("a", limit, idempotent), nil, 0, outcome{Type: schema.Timeout, Output: "no result within the tool's time limit of 1s"}, time.Second},
		{"lower timeout of the call", hangs("a", limit, idempotent), nil, 300, outcome{Type: schema.Timeout, Output: "no result within the tool's time limit of 300ms"}, 300 * time.Millisecond},
		{"higher timeout of the call", hangs("a", limit, idempotent), nil, 5000, outcome{Type: schema.Timeout, Output: "no result within the tool's time limit of 1s"}, time.Second},
		{"only the call's timeout", hangs("a", idempotent), nil, 5000, outcome{Type: schema.Timeout, Output: "no result within the tool's time limit of 5s"}, 5 * time.Second},
		{"deadline", hangs("a", idempotent), func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 700*time.Millisecond)
		}, -1, outcome{Type: schema.Timeout, Output: "no result before the call's deadline"}, 700 * time.Millisecond},
		{"cancelled with a reason", hangs("a", idempotent), func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(100*time.Millisecond, func() { cancel(reason) })
			return ctx, func() { cancel(nil) }
		}, 0, outcome{Type: schema.Cancelled, Output: "the run was stopped"}, 100 * time.Millisecond},
		{"cancelled", hangs("a", idempotent), func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(100*time.Millisecond, cancel)
			return ctx, cancel
		}, 0, outcome{Type: schema.Cancelled, Output: "the call was cancelled"}, 100 * time.Millisecond},
		{"cancelled before it began", text("a", func(context.Context) (string, error) { panic("runs") }), func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}, 0, outcome{Type: schema.Cancelled, Output: "the call was cancelled; it did not start"}, 0},
		{"says how far it came", says, nil, 0, outcome{Type: schema.Timeout, Output: "no result within the tool's time limit of 1s: was at line 7"}, time.Second},
		{"succeeds within the grace", late, nil, 0, outcome{OK: true, Output: "done"}, 2 * time.Second},
		{"deaf to its context", deaf, nil, 0, outcome{Type: schema.Timeout, Output: "no result within the tool's time limit of 1s: the tool did not stop and was given up"}, 3 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				set := newSet(t, tt.tool)
				c := call(tt.tool.Name, "")
				c.Idempotent, c.TimeoutMS = tt.tool.Idempotent, tt.call
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if tt.ctx != nil {
					ctx, cancel = tt.ctx(ctx)
				}
				defer cancel()
				start := time.Now()
				r, pending := set.Execute(ctx, c)
				if pending != nil {
					t.Fatalf("pending: %+v", pending)
				}
				if got := outcomeOf(r); got != tt.want {
					t.Errorf("got %+v, want %+v", got, tt.want)
				}
				if got := time.Since(start); got != tt.after {
					t.Errorf("took %v, want %v", got, tt.after)
				}
				time.Sleep(2 * time.Hour) // until the deaf one has ended
			})
		})
	}
}

func TestAbandoned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		set, err := executor.Config{Queue: "test", Grace: 10 * time.Second, Logger: slog.New(slog.DiscardHandler)}.NewSet(
			text("deaf", func(context.Context) (string, error) { <-release; panic("late") }, executor.Timeout(time.Second)))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if got := execute(t, set, call("deaf", "")); got.Type != schema.Timeout || time.Since(start) != 11*time.Second {
			t.Errorf("got %+v after %v", got, time.Since(start))
		}
		if got := set.With().Abandoned(); got != 1 {
			t.Errorf("%d abandoned, want 1", got)
		}
		close(release)
		synctest.Wait()
		if got := set.Abandoned(); got != 0 {
			t.Errorf("%d abandoned after its end, want 0", got)
		}
	})
}

func TestTransient(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("orders: %w", executor.Transient(errors.New("connection refused"), 1500*time.Millisecond))
	if executor.Transient(nil, time.Second) != nil {
		t.Error("Transient(nil) is not nil")
	}
	set := newSet(t, fails("idempotent", err, executor.Idempotent()), fails("once", err))
	tests := []struct {
		tool       string
		idempotent bool // of the call
		want       *schema.Pending
	}{
		{"idempotent", true, &schema.Pending{RetryAfterMS: 1500, Reason: "orders: connection refused"}},
		{"idempotent", false, nil}, // it has begun
		{"once", true, nil},
	}
	for _, tt := range tests {
		c := call(tt.tool, "")
		c.Idempotent = tt.idempotent
		r, pending := set.Execute(t.Context(), c)
		if diff := cmp.Diff(tt.want, pending); diff != "" {
			t.Errorf("%s: %s", tt.tool, diff)
		}
		if want := (outcome{Type: schema.ToolFailed, Output: "orders: connection refused"}); pending == nil && outcomeOf(r) != want {
			t.Errorf("%s: got %+v", tt.tool, outcomeOf(r))
		}
	}
}

func TestA13EveryFailureHasAText(t *testing.T) {
	t.Parallel()
	set := newSet(t, fails("empty", errors.New("")), fails("blank", errors.New(" \n\t")),
		fails("typed", &schema.Error{Type: schema.RateLimited}), fails("untyped", &schema.Error{Message: "x"}),
		fails("wrapped", fmt.Errorf("shop: %w", &schema.Error{Type: schema.RateLimited, Message: "slow down"})),
		fails("denied", &schema.Error{Type: schema.Denied, Message: "not yours"}))
	tests := []struct{ tool, want string }{
		{"empty", `TOOL_ERROR: {"errorType":"ToolFailed","error":"the tool failed and gave no reason","tool":"empty","callId":"c3"}`},
		{"blank", `TOOL_ERROR: {"errorType":"ToolFailed","error":"the tool failed and gave no reason","tool":"blank","callId":"c3"}`},
		{"typed", `TOOL_ERROR: {"errorType":"RateLimited","error":"no reason was given","tool":"typed","callId":"c3"}`},
		{"untyped", `TOOL_ERROR: {"errorType":"ToolFailed","error":": x","tool":"untyped","callId":"c3"}`},
		{"wrapped", `TOOL_ERROR: {"errorType":"RateLimited","error":"shop: RateLimited: slow down","tool":"wrapped","callId":"c3"}`},
		{"denied", `DENIED: not yours`},
	}
	for _, tt := range tests {
		r, _ := set.Execute(t.Context(), call(tt.tool, ""))
		if r.Output != tt.want || r.OK || r.Error == nil {
			t.Errorf("%s: got %+v, want %s", tt.tool, r, tt.want)
		}
	}
}

func TestA22OutputIsClean(t *testing.T) {
	t.Parallel()
	const dirty = "a\xed\xa0\xbdb\x00c\xff"
	set := newSet(t, says("out", dirty), fails("err", errors.New(dirty)), says("smile", "🙂"))
	for name, want := range map[string]string{"out": "a\uFFFDb\uFFFDc\uFFFD", "err": "a\uFFFDb\uFFFDc\uFFFD", "smile": "🙂"} {
		if got := execute(t, set, call(name, "")); got.Output != want {
			t.Errorf("%s: got %q, want %q", name, got.Output, want)
		}
	}
}

func TestB15Size(t *testing.T) {
	t.Parallel()
	set := newSet(t, says("fits", strings.Repeat("x", executor.MaxOutput)), says("large", strings.Repeat("x", executor.MaxOutput+1)),
		says("grows", strings.Repeat("x\xff", executor.MaxOutput/2)), fails("err", errors.New("first "+strings.Repeat("🙂", 5<<18)+" last")))
	if got := execute(t, set, call("fits", "")); !got.OK || len(got.Output) != executor.MaxOutput {
		t.Errorf("fits: %v, %d bytes", got.OK, len(got.Output))
	}
	for _, name := range []string{"large", "grows"} {
		if got := execute(t, set, call(name, "")); got.Type != schema.TooLarge || !strings.Contains(got.Output, "67108864") {
			t.Errorf("%s: %.200q", name, got.Output)
		}
	}
	got := execute(t, set, call("err", ""))
	if len(got.Output) > 4<<10 || !strings.HasPrefix(got.Output, "first 🙂") || !strings.HasSuffix(got.Output, "🙂 last") || strings.Contains(got.Output, "\uFFFD") {
		t.Errorf("err: %d bytes, %.40q", len(got.Output), got.Output)
	}
}

// TestD34ManyAtOnce is for the race detector.
func TestD34ManyAtOnce(t *testing.T) {
	t.Parallel()
	set := newSet(t, executor.Func("echo", "Echoes.", func(ctx context.Context, in city) (string, error) {
		return executor.Key(ctx) + in.Name, nil
	}, executor.Timeout(time.Minute))).With(func(next executor.Execute) executor.Execute { return next })
	var wg sync.WaitGroup
	for run := range 50 {
		for i := range 16 {
			wg.Go(func() {
				c := &schema.Call{Run: fmt.Sprint("r", run), Turn: 1, Index: i, Tool: "echo", Args: schema.JSONText(fmt.Sprintf(`{"name":"n%d"}`, i))}
				r, _ := set.Execute(t.Context(), c)
				if want := fmt.Sprintf("r%d/1.%dn%d", run, i, i); r.Output != want || r.Index != i {
					t.Errorf("got %q, want %q", r.Output, want)
				}
				_, _ = set.Call(t.Context(), "echo", c.Args)
				_ = set.Tools()
			})
		}
	}
	wg.Wait()
}

func BenchmarkExecute(b *testing.B) {
	args := schema.JSONText(`{"name":"Köln","days":3}`)
	run := func(context.Context, *schema.Call) (string, error) { return "ok", nil }
	free := executor.Tool{Tool: schema.Tool{Name: "free", Description: "Takes anything."}, Run: run}
	typed := executor.Func("typed", "Takes a city.", func(context.Context, city) (string, error) { return "ok", nil })
	limited := executor.Func("limited", "Has a timeout.", func(context.Context, city) (string, error) { return "ok", nil }, executor.Timeout(time.Minute))
	set := newSet(b, free, typed, limited)
	for _, tool := range set.Tools() {
		b.Run(tool.Name, func(b *testing.B) {
			b.ReportAllocs()
			c := call(tool.Name, string(args))
			ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
			defer cancel()
			for b.Loop() {
				if r, _ := set.Execute(ctx, c); !r.OK {
					b.Fatal(r.Output)
				}
			}
		})
	}
}
