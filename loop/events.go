package loop

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// EventType says what happened.
type EventType string

// The types of events, in the order in which they come:
//
//	run_start
//	  ( final_output | step_start ( compaction_start model_retry* compaction_end )?
//	      model_request ( model_retry | model_delta )* model_response
//	      tool_call*  ( approval_requested | approval_settled | handoff_start | handoff_end | tool_progress | tool_settled | tool_result )*
//	    error? final_output? step_end )*
//	error? run_end
//
// Who takes over a run whose last turn was left ends that turn first: a step without compaction and request.
//
// Every start has its end, also on failure: step_start its step_end, compaction_start its compaction_end, model_request its
// model_response, tool_call its tool_settled and tool_result, handoff_start its handoff_end, run_start its run_end; approval_requested its approval_settled, perhaps in another process. A prompt that is too large makes a
// second compaction and a second request of its step.
const (
	EventRunStart          EventType = "run_start"
	EventStepStart         EventType = "step_start"         // a turn begins; Reason: the limit, when it is the last one, without tools
	EventCompactionStart   EventType = "compaction_start"   // the memory is compacted
	EventCompactionEnd     EventType = "compaction_end"     // it is, with the summary in Text; or it stays as it was, because of Error
	EventModelRequest      EventType = "model_request"      // the model is asked
	EventModelRetry        EventType = "model_retry"        // the request failed (Error) and is sent again after WaitMS; what deltas said is void
	EventModelDelta        EventType = "model_delta"        // a piece of Text or Reasoning
	EventModelResponse     EventType = "model_response"     // the whole answer, or Error
	EventToolCall          EventType = "tool_call"          // once per call, in call order, valid or not
	EventApprovalRequested EventType = "approval_requested" // a person is asked about a call (Approval), which waits
	EventApprovalSettled   EventType = "approval_settled"   // the question is decided, or nobody did in time
	EventToolProgress      EventType = "tool_progress"      // what a running call reports (Text)
	EventToolSettled       EventType = "tool_settled"       // a result is there; in the order of arrival
	EventToolResult        EventType = "tool_result"        // a result is in the memory; strictly in call order. Text: what the model reads
	EventHandoffStart      EventType = "handoff_start"      // a task is handed to a sub-agent, or refused; of a run that went on elsewhere, once more
	EventHandoffEnd        EventType = "handoff_end"        // it is settled: completed, failed, fallback or denied
	EventStepEnd           EventType = "step_end"
	EventFinalOutput       EventType = "final_output" // the answer of an exchange, with its Reason; outside of a step when a hook refused the message
	EventError             EventType = "error"        // what failed, in Error: in a step what ended the exchange, before run_end what ended the run here
	EventRunEnd            EventType = "run_end"      // nothing follows; Reason: the state of the closed run; Error: why this process has left it
)

// Event is one entry of the stream that a run tells about itself. It is for eyes and tests: facts are the record.
type Event struct {
	Run        string          `json:"run"`
	Seq        uint64          `json:"seq"` // from 1 in each run, without a gap
	Time       time.Time       `json:"time"`
	Type       EventType       `json:"type"`
	Exchange   int             `json:"exchange,omitempty"`   // number of the answer being worked on, from 1
	Turn       int             `json:"turn,omitempty"`       // from 1
	Call       *CallInfo       `json:"call,omitempty"`       // tool_*
	Handoff    *HandoffInfo    `json:"handoff,omitempty"`    // handoff_*
	Compaction *CompactionInfo `json:"compaction,omitempty"` // compaction_*
	Approval   *ApprovalInfo   `json:"approval,omitempty"`   // approval_*
	Result     *schema.Result  `json:"result,omitempty"`     // tool_settled, tool_result; absent when the transport failed
	Text       string          `json:"text,omitempty"`
	Reasoning  string          `json:"reasoning,omitempty"`  // model_delta
	Messages   int             `json:"messages,omitempty"`   // model_request: how many it holds
	Tools      int             `json:"tools,omitempty"`      // model_request: how many the model sees
	Calls      int             `json:"calls,omitempty"`      // model_response: how many it asks for
	Model      string          `json:"model,omitempty"`      // model_response: who answered
	Finish     schema.Finish   `json:"finish,omitempty"`     // model_response
	Usage      *schema.Usage   `json:"usage,omitempty"`      // model_response, compaction_end: of the request; final_output: of the exchange
	Notices    []string        `json:"notices,omitempty"`    // model_response: which tools the model was not shown, and why; each once in an exchange
	Attempt    int             `json:"attempt,omitempty"`    // model_retry: the attempt that follows, from 2
	WaitMS     int64           `json:"wait_ms,omitempty"`    // model_retry: milliseconds until then
	ElapsedMS  int64           `json:"elapsed_ms,omitempty"` // the ends: milliseconds since their start
	Reason     schema.Reason   `json:"reason,omitempty"`     // final_output, run_end; step_start of a last turn
	Error      string          `json:"error,omitempty"`
}

// CallInfo names a call in an event.
type CallInfo struct {
	Index  int             `json:"index"` // from 0
	Label  string          `json:"label"`
	Tool   string          `json:"tool"`
	Queue  string          `json:"queue"`
	Args   schema.JSONText `json:"args,omitempty"`   // tool_call only
	Action schema.Action   `json:"action,omitempty"` // what was decided; tool_call only
}

// ApprovalInfo is a question about a call, and its verdict.
type ApprovalInfo struct {
	Ask       int             `json:"ask"`                // number of the question about this call, from 1
	Digest    string          `json:"digest"`             // what an approval names
	Rule      string          `json:"rule,omitempty"`     // that asks
	Why       string          `json:"why,omitempty"`      // it asks; once settled: why it was decided so
	Edited    schema.JSONText `json:"edited,omitempty"`   // the arguments, when they are not those of the turn
	ExpiresMS int64           `json:"expires_ms"`         // Unix ms
	Decision  string          `json:"decision,omitempty"` // approval_settled: approve, deny or expired
	By        string          `json:"by,omitempty"`       // approval_settled: who decided
}

// CompactionInfo says what is compacted.
type CompactionInfo struct {
	Strategy string `json:"strategy"`
	Trigger  string `json:"trigger"`
	UpTo     int    `json:"up_to"`  // last turn that is compacted
	Tokens   int64  `json:"tokens"` // that the prompt takes, about: before it, and at its end after it
}

// emitter numbers the events of a run and hands them to the sink one at a time.
type emitter struct {
	mu   sync.Mutex
	run  string
	sink func(Event)
	log  *slog.Logger
	seq  uint64
}

func (e *emitter) emit(ev Event) {
	if e.sink == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.send(ev)
}

func (e *emitter) send(ev Event) {
	e.seq++
	ev.Run, ev.Seq, ev.Time = e.run, e.seq, time.Now()
	e.tell(ev)
}

// tell hands an event to the sink. One that panics has not seen it; the run goes on.
func (e *emitter) tell(ev Event) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("the receiver of events panicked", "run", ev.Run, "event", ev.Type, "panic", schema.Cut(fmt.Sprint(p), maxPanic), "stack", string(debug.Stack()))
		}
	}()
	e.sink(ev)
}

// gate lets events of others (a model's deltas, a call's progress) through until it is shut: a straggler must not
// come after the end of what it belongs to.
type gate struct {
	to   *emitter
	shut bool // guarded by to.mu
}

func (g *gate) emit(ev Event) {
	if g.to.sink == nil {
		return
	}
	g.to.mu.Lock()
	defer g.to.mu.Unlock()
	if !g.shut {
		g.to.send(ev)
	}
}

// close shuts the gate and emits ev, the end, as one step.
func (g *gate) close(ev Event) {
	g.to.mu.Lock()
	defer g.to.mu.Unlock()
	g.shut = true
	if g.to.sink != nil {
		g.to.send(ev)
	}
}
