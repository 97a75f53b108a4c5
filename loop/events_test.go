package loop_test

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
)

// TestEventsAreDocumented: every type and every reason that the source has stands in a table of docs/events.md.
func TestEventsAreDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	for file, declared := range map[string]*regexp.Regexp{
		"events.go":          regexp.MustCompile(`(?m)^\tEvent\w+ +EventType = "(\w+)"`),
		"../schema/facts.go": regexp.MustCompile(`(?m)^\tReason\w+ +Reason = "(\w+)"`),
	} {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all := declared.FindAllSubmatch(src, -1)
		if len(all) < 10 {
			t.Errorf("%s: only %d names were found", file, len(all))
		}
		for _, m := range all {
			name := regexp.QuoteMeta("`" + string(m[1]) + "`")
			if !regexp.MustCompile(`(?m)^\|[^|\n]*` + name + `[^|\n]*\|`).Match(doc) {
				t.Errorf("%s is not documented", m[1])
			}
		}
	}
}

// TestFailedExchangeInOrder: a failing model ends the exchange with its error, its final output and all ends.
func TestFailedExchangeInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(modelError(model.Auth, 0))
	r.run(t)
	want := "run_start\nstep_start\nmodel_request\nmodel_response\nerror\nfinal_output\nstep_end\nrun_end\n"
	if diff := cmp.Diff(want, r.events.Lines()); diff != "" {
		t.Error(diff)
	}
}

func TestEventsAsJSON(t *testing.T) {
	t.Parallel()
	r := newRig(calls("ok", "nobody"), looptest.Text("done"))
	r.run(t)
	for _, ev := range r.events.List() {
		data, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		var back loop.Event
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		ev.Time = back.Time // without the monotonic clock
		if diff := cmp.Diff(ev, back); diff != "" {
			t.Error(diff)
		}
	}
}

// TestEventsReceiverPanics: who only listens does not keep a run from going on.
func TestEventsReceiverPanics(t *testing.T) {
	t.Parallel()
	r := newRig(calls("ok", "nobody"), looptest.Text("done"))
	heard := 0
	r.cfg.Events = func(loop.Event) {
		heard++
		panic("deaf")
	}
	run := r.start(t)
	if answer, err := run.Say(t.Context(), "go"); err != nil || answer.Text != "done" {
		t.Errorf("answer %+v, %v", answer, err)
	}
	if err := run.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if heard < 10 {
		t.Errorf("only %d events were told", heard)
	}
}
