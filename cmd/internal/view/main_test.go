package view

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a run of two turns: three calls whose results come out of order, one of them after its worker died, then
// an answer.
func script() []loop.Event {
	call := func(i int, tool, args string) *loop.CallInfo {
		return &loop.CallInfo{Index: i, Tool: tool, Queue: "files", Args: schema.JSONText(args)}
	}
	result := func(ok bool, worker string, delivery uint64, ran int64) *schema.Result {
		return &schema.Result{OK: ok, Worker: worker, Delivery: delivery, StartedMS: 1000, EndedMS: 1000 + ran}
	}
	slow, fast, bad := call(0, "watch_files", `{"path":"."}`), call(1, "list_files", `{}`), call(2, "rm\x1b[2J_all", `{}`)
	return []loop.Event{
		{Type: loop.EventRunStart},
		{Type: loop.EventStepStart, Turn: 1},
		{Type: loop.EventModelRequest, Turn: 1},
		{Type: loop.EventModelRetry, Turn: 1, Attempt: 2, WaitMS: 500, Error: "model: unavailable (HTTP 503)\nbusy"},
		{Type: loop.EventModelDelta, Turn: 1, Text: "Let me"},
		{Type: loop.EventModelResponse, Turn: 1, Calls: 3, Text: "Let me\nlook.", ElapsedMS: 1234},
		{Type: loop.EventToolCall, Turn: 1, Call: slow},
		{Type: loop.EventToolCall, Turn: 1, Call: fast},
		{Type: loop.EventToolCall, Turn: 1, Call: bad},
		{Type: loop.EventToolProgress, Turn: 1, Call: slow, Text: "watching"},
		{Type: loop.EventToolSettled, Turn: 1, Call: bad, Result: result(false, "orchestrator", 0, 0)},
		{Type: loop.EventToolSettled, Turn: 1, Call: fast, Result: result(true, "worker-b", 1, 4)},
		{Type: loop.EventToolSettled, Turn: 1, Call: slow, Result: result(true, "worker-c", 2, 3000)},
		{Type: loop.EventToolResult, Turn: 1, Call: slow, Text: "no change"},
		{Type: loop.EventToolResult, Turn: 1, Call: fast, Text: "go.mod\nschema/\n"},
		{Type: loop.EventToolResult, Turn: 1, Call: bad, Text: "TOOL_ERROR: {}"},
		{Type: loop.EventStepEnd, Turn: 1, ElapsedMS: 4300},
		{Type: loop.EventStepStart, Turn: 2, Reason: schema.ReasonMaxSteps},
		{Type: loop.EventModelResponse, Turn: 2, Text: "All quiet."},
		{Type: loop.EventFinalOutput, Turn: 2, Text: "All quiet.\x1b]0;title\x07\nReally.", Reason: schema.ReasonMaxSteps, Error: "The limit of 2 steps is reached."},
		{Type: loop.EventStepEnd, Turn: 2},
		{Type: loop.EventRunEnd, Reason: schema.ReasonMaxSteps},
	}
}

// play shows the script, with the hints that a command adds.
func play(v *View) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, e := range script() {
		e.Seq, e.Time, e.Run = uint64(i+1), at.Add(time.Duration(i)*100*time.Millisecond), "run"
		v.Event(e)
		if e.Type == loop.EventToolProgress {
			v.Working(1, 0, "worker-a")
			v.Working(1, 0, "worker-a")
			v.Gone("worker-a")
			v.Note("worker_killed", "SIGKILL to\nworker-a")
			v.Working(1, 0, "worker-c")
		}
	}
	v.Working(1, 0, "worker-d") // too late
	v.Print("The end.")
	v.Put(struct {
		Type string `json:"type"`
	}{"end"})
}
