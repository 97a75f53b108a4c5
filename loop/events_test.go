package loop_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
)

// TestEventsAreDocumented: every type stands in the table of docs/events.md.
func TestEventsAreDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []loop.EventType{
		loop.EventRunStart, loop.EventStepStart, loop.EventCompactionStart, loop.EventCompactionEnd, loop.EventModelRequest, loop.EventModelRetry, loop.EventModelDelta, loop.EventModelResponse,
		loop.EventToolCall, loop.EventToolProgress, loop.EventToolSettled, loop.EventToolResult, loop.EventStepEnd, loop.EventFinalOutput,
		loop.EventError, loop.EventRunEnd,
	} {
		if !strings.Contains(string(doc), "| `"+string(typ)+"` |") {
			t.Errorf("%s is not documented", typ)
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
