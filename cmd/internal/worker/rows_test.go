package worker

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/schema"
)

// TestB05C13CallThatKillsItsWorker: no guard helps against what ends the process. The attempts are counted, the call
// ends as lost before its deadline and lies among the dead letters, and other calls of the queue get their results.
func TestB05C13CallThatKillsItsWorker(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"nil_map", "overflow"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			f := newFarm(t)
			w := f.supervise(t, "--attempts", "2")
			lost := f.call(t, 0, tool, order{ID: "killer"}, 2*time.Minute)
			for n := range 2 {
				bustest.Eventually(t, "the worker dies", func() bool { return w.Starts() > 1+n })
				for i := range 10 {
					if r := f.call(t, 1+n*10+i, "ok", order{ID: "healthy"}, time.Minute)(); !r.OK {
						t.Errorf("a healthy call: %+v", r)
					}
				}
			}
			wantError(t, lost(), schema.WorkerLost)
			key := f.run + "/1.0 "
			if got := f.starts(t, "killer"); len(got) != 2 || got[0] != key+"1" || got[1] != key+"2" {
				t.Errorf("starts %q, want two deliveries with one key", got)
			}
			bustest.Eventually(t, "a dead letter is there", func() bool { return len(f.letters(t)) > 0 }) // it follows the result
			if got := f.letters(t); len(got) != 1 || got[0] != f.run+"/1.0" {
				t.Errorf("dead letters of %q, want one", got)
			}
		})
	}
}

// TestD15RunOnce loses a run-once call in every way: its effect happens once, under one key, and the model is told what
// is known.
func TestD15RunOnce(t *testing.T) {
	t.Parallel()
	t.Run("the tool fails for the moment", func(t *testing.T) {
		t.Parallel()
		f := newFarm(t)
		f.worker(t)
		wantError(t, f.call(t, 0, "fails", order{ID: "x"}, time.Minute)(), schema.ToolFailed)
		f.wantOneStart(t, 0, "x")
	})
	t.Run("the worker dies", func(t *testing.T) {
		t.Parallel()
		f := newFarm(t)
		f.supervise(t)
		wantError(t, f.call(t, 0, "nil_map_once", order{ID: "x"}, 2*time.Minute)(), schema.OutcomeUnknown)
		f.wantOneStart(t, 0, "x")
	})
	t.Run("the deadline passes", func(t *testing.T) {
		t.Parallel()
		f := newFarm(t)
		f.worker(t)
		wantError(t, f.call(t, 0, "nap_once", order{ID: "x", MS: 600_000}, 3*time.Second)(), schema.Timeout)
		f.wantOneStart(t, 0, "x")
	})
	t.Run("the result is lost on its way", func(t *testing.T) {
		t.Parallel()
		f := newFarm(t)
		proxy, url := f.srv.Behind(t)
		program, line := f.command(url)
		harness.Start(t, harness.Command{Program: program, Args: line})
		result := f.call(t, 0, "gate_once", order{ID: "x"}, time.Minute)
		f.awaitStart(t, "x")
		f.worker(t) // which would run it again
		proxy.Cut()
		f.open(t, "x")
		f.awaitStart(t, "returned.x")
		proxy.Heal()
		if r := result(); !r.OK || r.Output != "x" {
			t.Errorf("%+v", r)
		}
		f.wantOneStart(t, 0, "x")
	})
	t.Run("the call is published again", func(t *testing.T) {
		t.Parallel()
		f := newFarm(t)
		f.worker(t)
		first := f.call(t, 0, "nap_once", order{ID: "x"}, time.Minute)()
		second := f.call(t, 0, "nap_once", order{ID: "x"}, time.Minute)()
		if !first.OK || second.EndedMS != first.EndedMS || second.Worker != first.Worker {
			t.Errorf("%+v, then %+v; want the first result again", first, second)
		}
		f.wantOneStart(t, 0, "x")
	})
}

// TestC01C09C10LongCalls: calls that take longer than AckWait with default settings, one of them keeping the only
// processor busy, start once though another worker waits for work; also while their worker is told to end.
func TestC01C09C10LongCalls(t *testing.T) {
	t.Parallel()
	for _, term := range []bool{false, true} {
		t.Run(fmt.Sprintf("term %t", term), func(t *testing.T) {
			t.Parallel()
			f := newFarm(t)
			program, line := f.command(f.srv.URL())
			w := harness.Start(t, harness.Command{Program: program, Args: line, Env: []string{"GOMAXPROCS=1"}})
			ms := int((bus.AckWait*2 + bus.AckWait/4).Milliseconds())
			busy := f.call(t, 0, "spin", order{ID: "busy", MS: ms}, time.Minute)
			idle := f.call(t, 1, "nap", order{ID: "idle", MS: ms}, time.Minute)
			f.awaitStart(t, "busy", "idle")
			f.worker(t)
			if term {
				w.Signal(syscall.SIGTERM)
			}
			for _, r := range []schema.Result{busy(), idle()} {
				if !r.OK || r.Delivery != 1 {
					t.Errorf("%+v, want the result of the first delivery", r)
				}
			}
			f.wantOneStart(t, 0, "busy")
			f.wantOneStart(t, 1, "idle")
			if term {
				if r := w.Wait(); r.Code != 0 {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

// TestC03TermWithinTheGrace: who is told to end and has calls that do not end, hands back what may run again, reports
// the others as cancelled, and says with its exit code that a handler did not hear.
func TestC03TermWithinTheGrace(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	w := f.worker(t, "--drain", "100ms")
	again := f.call(t, 0, "gate", order{ID: "again"}, time.Minute)
	once := f.call(t, 1, "gate_once", order{ID: "once"}, time.Minute)
	ignores := f.call(t, 2, "deaf_once", order{ID: "deaf"}, time.Minute)
	f.awaitStart(t, "again", "once", "deaf")
	w.Signal(syscall.SIGTERM)
	r := w.Wait()
	if r.Code != 128+int(syscall.SIGTERM) || !strings.Contains(r.Stderr, "are cut off: 1") {
		t.Errorf("%+v, want exit 143 for the handler that was left", r)
	}
	wantError(t, once(), schema.Cancelled)
	wantError(t, ignores(), schema.Cancelled)
	f.open(t, "again")
	f.worker(t)
	if r := again(); !r.OK || r.Delivery != 2 {
		t.Errorf("%+v, want the result of the second delivery", r)
	}
	f.wantOneStart(t, 1, "once")
	f.wantOneStart(t, 2, "deaf")
}

// TestD20StuckTools: a stop and a time limit end calls whose handlers hear of nothing; a worker that has lost all of its
// slots to such handlers ends for its supervisor.
func TestD20StuckTools(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	w := f.worker(t, "--slots", "2")
	late := f.call(t, 0, "deaf_once", order{ID: "late"}, 2*time.Second)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan schema.Result, 1)
	go func() {
		r, err := f.Dispatch(ctx, f.called(1, "deaf", order{ID: "stopped"}), hostileQueue, time.Minute)
		if err != nil {
			t.Error(err)
		}
		stopped <- r
	}()
	f.awaitStart(t, "late", "stopped")
	stop()
	wantError(t, <-stopped, schema.Cancelled)
	wantError(t, late(), schema.Timeout)
	if r := w.Wait(); r.Code != cli.CodeFailed || !strings.Contains(r.Stderr, errLostSlots.Error()) {
		t.Errorf("%+v", r)
	}
}

// TestC16TermAtTheStart: who is told to end before it serves leaves nothing behind.
func TestC16TermAtTheStart(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h := hostile{Slots: 1, Dir: f.dir}
	h.URL, h.Prefix = f.srv.URL(), bus.DefaultPrefix
	if err := h.Run(ctx, &cli.App{Log: slog.New(slog.DiscardHandler), Out: io.Discard}); err != nil {
		t.Error(err)
	}
}

// TestC16RollingRestart replaces three workers one after the other under load: every call starts once, and what a worker
// had not started it gave back in writing.
func TestC16RollingRestart(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	workers := []*harness.Process{f.worker(t), f.worker(t), f.worker(t)}
	for _, w := range workers {
		w.Await("queue " + hostileQueue)
	}
	const calls = 300
	results := make([]func() schema.Result, calls)
	for i := range results {
		tool := []string{"nap", "nap_once"}[i%2]
		results[i] = f.call(t, i+1, tool, order{ID: fmt.Sprintf("call%d", i), MS: 150}, time.Minute)
	}
	for _, w := range workers {
		next := f.worker(t)
		next.Await("queue " + hostileQueue)
		w.Signal(syscall.SIGTERM)
		if r := w.Wait(); r.Code != 0 {
			t.Errorf("%+v", r)
		}
	}
	backs, given := map[int]uint64{}, uint64(0) // by index
	settled := make([]schema.Result, calls)
	for i := range calls {
		settled[i] = results[i]()
	}
	facts, err := f.Facts(t.Context(), f.run, 0, schema.KindBack)
	if err != nil {
		t.Fatal(err)
	}
	for _, fact := range facts {
		backs[fact.Key.I]++
	}
	for i, r := range settled {
		if got := f.starts(t, r.Output); !r.OK || len(got) != 1 {
			t.Errorf("%+v, starts %q", r, got)
		}
		// The server also counts a delivery that met nobody any more, and hands it out again at once.
		if backs[i+1] > r.Delivery-1 {
			t.Errorf("call %d: delivery %d, but %d were given back", i+1, r.Delivery, backs[i+1])
		}
		given += backs[i+1]
	}
	if given != uint64(len(facts)) {
		t.Errorf("%d of %d facts say that a call of this test was given back", given, len(facts))
	}
}
