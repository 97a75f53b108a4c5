package playback_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/cmd/internal/playback"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model/replay"
	"github.com/jetcrew/jetcrew/schema"
)

var errKilled = errors.New("the player is killed")

// mortal is the bus as a process sees it that is killed after some steps; the workers live on.
type mortal struct {
	*looptest.Bus
	mu   sync.Mutex
	left int
}

func (m *mortal) dead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left--
	return m.left < 0
}

func (m *mortal) Append(ctx context.Context, run string, key schema.Key, p schema.Encodable, unless schema.Key) (uint64, error) {
	if m.dead() {
		return 0, errKilled
	}
	return m.Bus.Append(ctx, run, key, p, unless)
}

func (m *mortal) Start(calls ...schema.Dispatch) {
	for _, d := range calls {
		var r schema.Result
		switch {
		case m.dead():
			d.Done(schema.Result{}, errKilled)
		case m.Fact(d.Call.Run, d.Call.ResultKey(d.Queue), &r):
			d.Done(r, nil)
		default:
			m.Bus.Start(d)
		}
	}
}

// TestPlayGoesOn kills the player after each of its steps: the next one ends the same run, which is as recorded, and a
// third one only compares it.
func TestPlayGoesOn(t *testing.T) {
	t.Parallel()
	tr := load(t, conversation)
	for steps := 0; ; steps++ {
		b := fleet(tr, nil)
		p := playback.Player{Principal: anybody, Bus: &mortal{Bus: b, left: steps}, Model: replay.New(*tr), Queue: "mock", Runs: "test"}
		if _, err := p.Play(t.Context(), tr); err == nil {
			if steps < 15 {
				t.Errorf("only %d steps", steps)
			}
			return
		}
		p.Bus = b
		first, err := p.Play(t.Context(), tr)
		if err != nil {
			t.Fatalf("after %d steps: %v", steps, err)
		}
		if len(first.Differences) > 0 || first.Turns != 3 || first.Calls != 3 || first.Resumed != (steps > 0) {
			t.Errorf("after %d steps: %+v; facts %v", steps, first, b.Keys(first.Run))
		}
		n := len(b.Keys(first.Run))
		again, err := p.Play(t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		again.Disordered = first.Disordered // what was seen while it was played
		if d := cmp.Diff(first.Recorded.Exchanges(), again.Recorded.Exchanges()); d != "" || !again.Resumed || len(again.Differences) > 0 || len(b.Keys(first.Run)) != n {
			t.Errorf("after %d steps: %s %+v; facts %v", steps, d, again, b.Keys(first.Run))
		}
	}
}

// TestPlayOfAStoppedRun: a run that was closed before its end is a difference.
func TestPlayOfAStoppedRun(t *testing.T) {
	t.Parallel()
	tr := load(t, conversation)
	b := fleet(tr, nil)
	id, err := playback.RunID("test", tr)
	if err != nil {
		t.Fatal(err)
	}
	for key, f := range map[schema.Key]schema.Encodable{
		schema.OpenKey(): &schema.Open{Kind: schema.RunAgent, Agent: &schema.AgentSpec{ID: "a"}}, schema.CloseKey(): &schema.Close{State: "stopped"},
	} {
		if _, err := b.Append(t.Context(), id, key, f, schema.Key{}); err != nil {
			t.Fatal(err)
		}
	}
	o := play(t, playback.Player{Principal: anybody, Bus: b, Runs: "test"}, tr)
	if len(o.Differences) == 0 || o.Differences[0].Got != "it is closed: stopped" {
		t.Errorf("%+v", o.Differences)
	}
}

func TestRunID(t *testing.T) {
	t.Parallel()
	long := &replay.Transcript{ID: strings.Repeat("Ünlich/.*> ", 50)}
	ids := map[string]bool{}
	for _, tr := range []*replay.Transcript{long, {ID: "a"}, {ID: "a", Messages: []replay.Message{{Role: schema.RoleUser}}}} {
		for _, prefix := range []string{"a", strings.Repeat("p", 37)} {
			id, err := playback.RunID(prefix, tr)
			again, _ := playback.RunID(prefix, tr)
			if err != nil || !schema.ValidID(id) || ids[id] || id != again || playback.CheckRuns(prefix) != nil {
				t.Errorf("%q of %.10s: %v", id, tr.ID, err)
			}
			ids[id] = true
		}
	}
	for _, prefix := range []string{"", "a.b", strings.Repeat("p", 38)} {
		if playback.CheckRuns(prefix) == nil {
			t.Errorf("%q is taken", prefix)
		}
	}
}
