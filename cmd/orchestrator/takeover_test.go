//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/schema"
)

// TestD12OwnerKilled kills a process whose runs are at every step of a turn: another goes on with all of them, asks for
// no written turn, and has no call with a result run again.
func TestD12OwnerKilled(t *testing.T) {
	t.Parallel()
	w := newTown(t, 20*time.Millisecond)
	first := w.serve("first", "--slots", "64")
	runs, places := []string{}, [][]string{
		{"ask 1"},                    // nothing is journaled but the task
		{"run note 1", "run book 1"}, // the calls run
		{"run book 1"},               // one of two has its result
		{"ask 2"},                    // all have
		{"run note 2"},
		{"ask 3"},
	}
	var gates []*gate
	for _, p := range places {
		run, g := w.start(2, p...)
		runs, gates = append(runs, run), append(gates, g...)
	}
	w.reached(gates...)
	w.await(runs[2], schema.ResultKey(1, 0, "town"))
	for range 12 { // wherever they are
		run, _ := w.start(2)
		runs = append(runs, run)
	}
	w.serve("second", "--slots", "64")
	w.await(runs[len(runs)-1], schema.TurnKey(1))
	first.Signal(syscall.SIGKILL)
	killed := time.Now()
	for _, g := range gates {
		close(g.opened)
	}
	w.check(2, runs...)
	t.Logf("closed %v after the kill", time.Since(killed).Round(time.Millisecond))
	for i := range places {
		if owner := w.owner(runs[i]); owner != "second" {
			t.Errorf("%v: the run is %s's at the end", places[i], owner)
		}
	}
}

// TestD35StalledOwner: an owner that stood still for too long loses its run and notices when it wakes.
func TestD35StalledOwner(t *testing.T) {
	t.Parallel()
	w := newTown(t, 0)
	first := w.serve("first")
	run, gates := w.start(2, "ask 2")
	w.reached(gates...)
	w.serve("second")
	first.Signal(syscall.SIGSTOP)
	w.check(2, run)
	close(gates[0].opened)
	first.Signal(syscall.SIGCONT)
	first.Await("run left to another owner")
	w.check(2, run)
	first.Signal(syscall.SIGTERM)
	wantCode(t, first.Wait(), 0)
}

// TestServeHandsBack: an owner that is told to end hands its runs back and ends well.
func TestServeHandsBack(t *testing.T) {
	t.Parallel()
	w := newTown(t, 0)
	first := w.serve("first")
	run, gates := w.start(2, "ask 2")
	w.reached(gates...)
	second := w.serve("second")
	first.Signal(syscall.SIGTERM)
	r := first.Wait()
	wantCode(t, r, 0)
	wantInOrder(t, r.Stderr, "run taken", run, "new=true", "run handed back", run)
	w.check(2, run)
	second.Signal(syscall.SIGTERM)
	r = second.Wait()
	wantCode(t, r, 0)
	wantInOrder(t, r.Stderr, "run taken", run, "from=first", "run closed", run, "state=done")
}

// TestServeLeavesWhatDoesNotSettle: a call that outlasts the drain is left to the next owner, and the exit code says so.
func TestServeLeavesWhatDoesNotSettle(t *testing.T) {
	t.Parallel()
	w := newTown(t, 0)
	first := w.serve("first", "--drain", "100ms")
	run, gates := w.start(1, "run book 1")
	w.reached(gates...)
	w.serve("second")
	first.Signal(os.Interrupt)
	r := first.Wait()
	wantCode(t, r, 130)
	wantInOrder(t, r.Stderr, "runs left to other owners: 1")
	close(gates[0].opened)
	w.check(1, run)
}

// TestServeSecondSignal: whoever signals twice does not wait.
func TestServeSecondSignal(t *testing.T) {
	t.Parallel()
	w := newTown(t, 0)
	first := w.serve("first", "--drain", "1h")
	_, gates := w.start(1, "run book 1")
	w.reached(gates...)
	first.Signal(os.Interrupt)
	first.Await("once more ends at once")
	first.Signal(os.Interrupt)
	wantCode(t, first.Wait(), 130)
	close(gates[0].opened)
}

// TestRollingRestart replaces all orchestrators one by one while 20 runs are under way.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	const turns = 3
	w := newTown(t, 100*time.Millisecond)
	hosts := []*harness.Process{w.serve("a1"), w.serve("b1")}
	var runs []string
	for range 20 {
		run, _ := w.start(turns)
		runs = append(runs, run)
	}
	w.await(runs[0], schema.TurnKey(2))
	for i, p := range hosts {
		w.serve(fmt.Sprintf("new%d", i))
		p.Signal(syscall.SIGTERM)
		wantCode(t, p.Wait(), 0)
	}
	w.check(turns, runs...)
}
