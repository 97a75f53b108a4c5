package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/jetcrew/jetcrew/schema"
)

// What a record says happened.
const (
	Opened     = "opened"     // the run began
	Owned      = "owned"      // an orchestrator took the run
	Stopped    = "stopped"    // somebody stopped it
	Said       = "said"       // a message for the agent
	Turned     = "turn"       // an answer of the model; what was decided about its calls follows
	Decided    = "decided"    // about one call of the turn: allow, ask, invalid, deny, guide, redirect
	Sent       = "sent"       // the call was published
	Asked      = "asked"      // a person is asked about the call
	Verdict    = "verdict"    // the answer to that
	Began      = "began"      // a worker started a run-once call
	GaveBack   = "gave_back"  // a worker gave a delivery back, not started
	Resulted   = "result"     // the one outcome of the call
	Viewed     = "view"       // a guard changed what the memory shows of the output
	Folded     = "fold"       // the memory was compacted
	Answered   = "answer"     // an exchange ended
	Closed     = "closed"     // the run ended
	Unreadable = "unreadable" // a fact whose payload cannot be read
)

// Record is one line of an audit trail. It names people, tools, rules and workers. What was said, asked for or returned
// stands in it as a digest only, the lower-case hex SHA-256 of its bytes.
type Record struct {
	ID    string `json:"id"`             // sequence of the fact in the stream of runs, and of calls of one fact a dot and the index: the same however often it is written
	AtMS  int64  `json:"at_ms"`          // when the fact was stored, on the server's clock
	Run   string `json:"run"`            // id of the run
	Fact  string `json:"fact"`           // key of the fact, such as result.1.0.files
	What  string `json:"what"`           // Opened and its siblings
	Turn  int    `json:"turn,omitempty"` // from 1
	Index *int   `json:"index,omitempty"`

	Principal string `json:"principal,omitempty"` // on whose behalf the run acts
	Tenant    string `json:"tenant,omitempty"`    // of the principal
	Agent     string `json:"agent,omitempty"`     // id of the agent
	Parent    string `json:"parent,omitempty"`    // opened: the call that the run answers, run/turn.index
	Previous  string `json:"previous,omitempty"`  // opened: the run whose conversation it goes on with

	Tool   string `json:"tool,omitempty"`   // as the model called it
	Target string `json:"target,omitempty"` // as its queue knows it, where that differs
	Source string `json:"source,omitempty"` // where the tool came from
	Queue  string `json:"queue,omitempty"`  // whose workers have it; none: nobody ran it
	Effect string `json:"effect,omitempty"` // of the tool

	Decision string `json:"decision,omitempty"` // of decided and verdict
	Rule     string `json:"rule,omitempty"`     // that decided, or asks
	By       string `json:"by,omitempty"`       // who decided, wrote or said it
	Why      string `json:"why,omitempty"`      // of a stop, a verdict and a delivery given back: in the words of who did it
	Outcome  string `json:"outcome,omitempty"`  // result: ok or the type of the error; answer: its reason; closed: the state

	Args   string `json:"args_digest,omitempty"`     // of the arguments
	Bound  string `json:"bound_digest,omitempty"`    // of the bound values
	Schema string `json:"schema_digest,omitempty"`   // of the tool's parameters
	Output string `json:"output_digest,omitempty"`   // of the whole output
	Text   string `json:"text_digest,omitempty"`     // of what was said, answered or is shown instead
	Asks   string `json:"approval_digest,omitempty"` // of asked and verdict: of all that the person decides about

	Worker    string       `json:"worker,omitempty"`     // instance of the process that began, gave back or wrote the result
	Delivery  uint64       `json:"delivery,omitempty"`   // of the call's message
	Seq       uint64       `json:"work_seq,omitempty"`   // of the call's message on the work stream
	StartedMS int64        `json:"started_ms,omitempty"` // result: server's clock; absent: it never started
	EndedMS   int64        `json:"ended_ms,omitempty"`   // result: server's clock
	ExpiresMS int64        `json:"expires_ms,omitempty"` // asked: server's clock
	Model     string       `json:"model,omitempty"`      // turn and fold: as the provider names it
	Usage     schema.Usage `json:"usage,omitzero"`       // turn, fold, answer and closed
	Turns     int          `json:"turns,omitempty"`      // closed: of the run
	Calls     int          `json:"calls,omitempty"`      // turn and closed: how many
}

// Sink takes records, one after the other. An error means that the record is not kept; it will come again.
type Sink func(ctx context.Context, r Record) error

// Lines returns a sink that writes each record as one line of JSON, in one Write.
func Lines(w io.Writer) Sink {
	var mu sync.Mutex
	return func(_ context.Context, r Record) error {
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("audit record %s: %w", r.ID, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if _, err := w.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("write audit record %s: %w", r.ID, err)
		}
		return nil
	}
}
