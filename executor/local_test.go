package executor_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/schema"
)

func local(t testing.TB, j executor.Journal, set *executor.Set) *executor.Local {
	t.Helper()
	l, err := executor.LocalConfig{Journal: j, Instance: "me"}.NewLocal(set)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// settled is what a Dispatch's Done got.
type settled struct {
	result schema.Result
	err    error
}

// dispatch has calls run and returns their outcomes in order.
func dispatch(t testing.TB, to executor.Dispatcher, calls ...schema.Dispatch) []settled {
	t.Helper()
	out := make([]settled, len(calls))
	var wg sync.WaitGroup
	wg.Add(len(calls))
	for i := range calls {
		if calls[i].Ctx == nil {
			calls[i].Ctx = t.Context()
		}
		if calls[i].Queue == "" {
			calls[i].Queue = "test"
		}
		calls[i].Done = func(r schema.Result, err error) { out[i] = settled{r, err}; wg.Done() }
	}
	to.Start(calls...)
	wg.Wait()
	return out
}

func nth(i int, tool, args string) *schema.Call {
	return &schema.Call{Run: "r1", Turn: 1, Index: i, Tool: tool, Args: schema.JSONText(args)}
}

func TestLocalRecords(t *testing.T) {
	t.Parallel()
	bus := looptest.NewBus()
	set := quiet(t, says("a", "out"), fails("b", errors.New("no")), says("c", "again"), text("idem", func(context.Context) (string, error) { return "i", nil }, executor.Idempotent()))
	idem := nth(3, "idem", "")
	idem.Idempotent = true
	got := dispatch(t, local(t, bus, set), schema.Dispatch{Call: nth(0, "a", "")}, schema.Dispatch{Call: nth(1, "b", "")}, schema.Dispatch{Call: nth(2, "nope", "")}, schema.Dispatch{Call: idem})
	want := []outcome{{OK: true, Output: "out"}, {Type: schema.ToolFailed, Output: "no"}, {Type: schema.UnknownTool}, {OK: true, Output: "i"}}
	for i, s := range got {
		o := outcomeOf(s.result)
		if want[i].Type == schema.UnknownTool {
			o.Output = ""
		}
		if s.err != nil || o != want[i] {
			t.Errorf("call %d: %+v, %v", i, o, s.err)
		}
		var fact schema.Result
		if !bus.Fact("r1", schema.ResultKey(1, i, "test"), &fact) || outcomeOf(fact) != outcomeOf(s.result) || fact.Worker != "me" || fact.Delivery != 1 {
			t.Errorf("call %d: recorded %+v", i, fact)
		}
		var begin schema.Begin
		if began := bus.Fact("r1", schema.BeginKey(1, i, "test"), &begin); began != (i != 3) {
			t.Errorf("call %d: begin %t", i, began)
		}
	}
}

func TestLocalRunOnceIsNotRepeated(t *testing.T) {
	t.Parallel()
	var ran atomic.Int64
	set := quiet(t, text("pay", func(context.Context) (string, error) { ran.Add(1); return "paid", nil }))
	t.Run("it has its result", func(t *testing.T) {
		bus := looptest.NewBus()
		first := dispatch(t, local(t, bus, set), schema.Dispatch{Call: nth(0, "pay", "")})
		second := dispatch(t, local(t, bus, set), schema.Dispatch{Call: nth(0, "pay", "")})
		if ran.Load() != 1 || outcomeOf(second[0].result) != outcomeOf(first[0].result) {
			t.Errorf("ran %d times, %+v", ran.Load(), second)
		}
	})
	t.Run("another process began it", func(t *testing.T) {
		bus := looptest.NewBus()
		before := ran.Load()
		if _, err := bus.Append(t.Context(), "r1", schema.BeginKey(1, 0, "test"), &schema.Begin{Instance: "gone"}, schema.Key{}); err != nil {
			t.Fatal(err)
		}
		got := dispatch(t, local(t, bus, set), schema.Dispatch{Call: nth(0, "pay", "")})
		if got[0].err != nil || got[0].result.Error.Type != schema.OutcomeUnknown || ran.Load() != before {
			t.Errorf("%+v", got)
		}
	})
}

func TestLocalJoinsItsOwnCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int64
		bus := looptest.NewBus()
		l := local(t, bus, quiet(t, text("slow", func(ctx context.Context) (string, error) {
			ran.Add(1)
			time.Sleep(time.Minute)
			return "done", nil
		})))
		got := dispatch(t, l, schema.Dispatch{Call: nth(0, "slow", "")}, schema.Dispatch{Call: nth(0, "slow", "")})
		for _, s := range got {
			if s.err != nil || s.result.Output != "done" {
				t.Errorf("%+v", s)
			}
		}
		if ran.Load() != 1 {
			t.Errorf("ran %d times", ran.Load())
		}
		l.Wait()
	})
}

func TestLocalDeadlines(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	tests := []struct {
		name string
		d    schema.Dispatch
		want schema.ErrorType
		says string
		took time.Duration
	}{
		{"within", schema.Dispatch{Call: nth(0, "hang", ""), Within: 3 * time.Second}, schema.Timeout, "deadline", 3 * time.Second},
		{"the tool's own bound", schema.Dispatch{Call: nth(0, "brief", ""), Within: time.Minute}, schema.Timeout, "time limit of 2s", 2 * time.Second},
		{"none of its own", schema.Dispatch{Call: nth(0, "hang", "")}, schema.Timeout, "deadline", 300 * time.Second},
		{"it has passed", schema.Dispatch{Call: nth(0, "hang", ""), Within: -1}, schema.Timeout, "not started", 0},
		{"cancelled before", schema.Dispatch{Call: nth(0, "hang", ""), Ctx: gone}, schema.Cancelled, "not started", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := local(t, looptest.NewBus(), quiet(t, hangs("hang"), hangs("brief", executor.Timeout(2*time.Second))))
				began := time.Now()
				got := dispatch(t, l, tt.d)[0]
				if got.err != nil || got.result.Error == nil || got.result.Error.Type != tt.want || !strings.Contains(got.result.Error.Message, tt.says) {
					t.Fatalf("%+v", got)
				}
				if took := time.Since(began); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				l.Wait()
			})
		})
	}
}

func TestLocalTriesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		set := quiet(t, text("flaky", func(context.Context) (string, error) {
			if tries++; tries < 3 {
				return "", executor.Transient(errors.New("busy"), 10*time.Second)
			}
			return "at last", nil
		}, executor.Idempotent()), fails("never", executor.Transient(errors.New("busy"), 10*time.Second), executor.Idempotent()))
		flaky, never := nth(0, "flaky", ""), nth(1, "never", "")
		flaky.Idempotent, never.Idempotent = true, true
		got := dispatch(t, local(t, looptest.NewBus(), set), schema.Dispatch{Call: flaky}, schema.Dispatch{Call: never, Within: 25 * time.Second})
		if got[0].result.Output != "at last" || tries != 3 || got[1].result.Error == nil || got[1].result.Error.Message != "busy" {
			t.Errorf("%+v", got)
		}
	})
}

func TestLocalJournalInTrouble(t *testing.T) {
	t.Parallel()
	bus := looptest.NewBus()
	broken := errors.New("no connection")
	bus.Refuse = func(string, schema.Key, schema.Encodable) error { return broken }
	set := quiet(t, says("a", ""), text("b", func(context.Context) (string, error) { return "", nil }, executor.Idempotent()))
	idem := nth(1, "b", "")
	idem.Idempotent = true
	for i, s := range dispatch(t, local(t, bus, set), schema.Dispatch{Call: nth(0, "a", "")}, schema.Dispatch{Call: idem}) {
		if !errors.Is(s.err, broken) {
			t.Errorf("call %d: %+v", i, s)
		}
	}
	bus.Refuse = func(string, schema.Key, schema.Encodable) error { panic("journal") }
	if s := dispatch(t, local(t, bus, set), schema.Dispatch{Call: nth(0, "a", "")}); s[0].err == nil {
		t.Error("a journal that panics: no error")
	}
}

func TestRoute(t *testing.T) {
	t.Parallel()
	away := looptest.NewBus()
	away.Tool(schema.Tool{Name: "far", Description: "Far."}, func(context.Context, *schema.Call) (string, error) { return "from afar", nil })
	l := local(t, away, newSetOn(t, "near", says("near", "from here")))
	router, err := executor.Route(away, l)
	if err != nil {
		t.Fatal(err)
	}
	got := dispatch(t, router, schema.Dispatch{Call: nth(0, "far", "")}, schema.Dispatch{Call: nth(1, "near", ""), Queue: "near"}, schema.Dispatch{Call: nth(2, "far", "")})
	var texts []string
	for _, s := range got {
		texts = append(texts, s.result.Output)
	}
	if diff := cmp.Diff([]string{"from afar", "from here", "from afar"}, texts); diff != "" {
		t.Error(diff)
	}
	router.Wait()
	if _, err := executor.Route(away, l, l); err == nil || !strings.Contains(err.Error(), `"near"`) {
		t.Errorf("two sets of one queue: %v", err)
	}
	alone, err := executor.Route(nil, l)
	if err != nil {
		t.Fatal(err)
	}
	if s := dispatch(t, alone, schema.Dispatch{Call: nth(3, "far", "")}); s[0].err == nil {
		t.Errorf("a call that nothing runs: %+v", s)
	}
}

func newSetOn(t testing.TB, queue string, tools ...executor.Tool) *executor.Set {
	t.Helper()
	set, err := executor.NewSet(queue, tools...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestExecuteIsSafeForConcurrentUse has something to say only under the race detector.
func TestExecuteIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	observe := func(next executor.Execute) executor.Execute {
		return func(ctx context.Context, c *schema.Call) (schema.Result, *schema.Pending) { return next(ctx, c) }
	}
	plain := quiet(t, says("a", "out"), fails("b", errors.New("no")), text("c", func(context.Context) (string, error) { panic("boom") }))
	custom, err := executor.Config{Queue: "test"}.Custom(plain.Execute, def("a"), def("b"), def("c"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]outcome{"a": {OK: true, Output: "out"}, "b": {Type: schema.ToolFailed, Output: "no"}, "c": {Type: schema.Panic, Output: "the tool panicked: boom"}}
	for _, set := range []*executor.Set{plain, plain.With(observe), custom} {
		var wg sync.WaitGroup
		for range 50 {
			for name, want := range want {
				wg.Go(func() {
					if r, _ := set.Execute(t.Context(), call(name, "{}")); outcomeOf(r) != want {
						t.Errorf("%s: %+v", name, outcomeOf(r))
					}
				})
			}
		}
		wg.Wait()
	}
}
