package bus_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// TestStopOfARunInTheQueue: a run is stopped before anybody has opened it. Whoever takes it asks no model and closes it.
func TestStopOfARunInTheQueue(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b, m := connect(t, srv), &slowModel{}
	for name, tt := range map[string]struct{ task, why string }{
		"small": {"go", "enough"}, "large": {strings.Repeat("go ", schema.MaxInline), "enough"}, "closed": {"go", schema.WhyClose},
	} {
		run := start(t, b, "helper", fmt.Sprintf(`{"task":%q}`, tt.task))
		for _, already := range []bool{false, true} {
			if s, err := b.StopRun(t.Context(), run, tt.why); err != nil || s.Slot != 1 || s.Already != already {
				t.Errorf("%s: %+v, %v", name, s, err)
			}
		}
		stop := host(t, connect(t, srv), m)
		facts := waitClosed(t, b, run, 20*time.Second)
		stop()
		var end schema.Close
		if err := schema.Decode(facts[len(facts)-1].Data, &end); err != nil || end.State != "stopped" {
			t.Errorf("%s: closed as %+v, %v", name, end, err)
		}
		if facts[0].Key != schema.CtlKey(1) {
			t.Errorf("%s: the first fact is %s", name, facts[0].Key)
		}
		for _, err := range bustest.Check(facts) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for turn := range m.asked {
		if n := m.asked[turn].Load(); n > 0 {
			t.Errorf("the model was asked %d times for turn %d", n, turn)
		}
	}
}

func TestFindQueued(t *testing.T) {
	t.Parallel()
	b := connect(t, server(t))
	openRun(t, b, "open-1")
	for _, c := range []schema.Call{{Run: "abc"}, {Run: "abcd"}, {Run: "abce"}, {Run: "abce"}, {Run: "parent", Turn: 1}} {
		c.Tool, c.Args = "helper", `{"task":"go"}`
		if err := b.StartRun(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Wake("woken"); err != nil {
		t.Fatal(err)
	}
	child := schema.ChildRun("parent", 1, 0, 1)
	for prefix, want := range map[string]string{"o": "open-1", "abc": "abc", "abcd": "abcd", "abce": "abce", child[:8]: child} {
		if got, err := b.FindQueued(t.Context(), prefix); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", prefix, got, err, want)
		}
	}
	for _, prefix := range []string{"q", "parent", "woken", "*", ">", ""} {
		if got, err := b.FindQueued(t.Context(), prefix); !errors.Is(err, bus.ErrNoRun) {
			t.Errorf("%s: %q, %v", prefix, got, err)
		}
		if s, err := b.StopRun(t.Context(), prefix, "x"); !errors.Is(err, bus.ErrNoRun) {
			t.Errorf("stop of %s: %+v, %v", prefix, s, err)
		}
	}
	var queued []string
	for q, err := range b.Queued(t.Context()) {
		if err != nil || q.Call.Tool != "helper" || q.At.IsZero() {
			t.Errorf("%+v, %v", q, err)
		}
		queued = append(queued, q.ID)
	}
	if want := []string{"abc", "abcd", "abce", child}; !slices.Equal(queued, want) {
		t.Errorf("in the queue: %q, want %q", queued, want)
	}
	openRun(t, b, "abcd")
	openRun(t, b, "parent-1")
	if got, err := b.FindQueued(t.Context(), "parent"); err != nil || got != "parent-1" {
		t.Errorf("parent: %q, %v", got, err)
	}
	for q, err := range b.Queued(t.Context()) {
		if err != nil || q.ID == "abcd" {
			t.Errorf("%+v, %v, though it is open", q, err)
		}
	}
	if _, err := b.SayTo(t.Context(), "abc", "hello"); !errors.Is(err, bus.ErrRunQueued) {
		t.Errorf("said to a run in the queue: %v", err)
	}
	var many *bus.AmbiguousError
	if _, err := b.FindQueued(t.Context(), "ab"); !errors.As(err, &many) || len(many.Runs) != 2 {
		t.Errorf("ab: %v", err)
	}
}
