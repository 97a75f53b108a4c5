package model

import (
	"errors"
	"fmt"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// Request asks a model for its next answer.
type Request struct {
	Agent    string           // id of the agent (for a replayed transcript: its id)
	Turn     int              // number of the turn that the answer becomes, from 1; 0: none, it is a summary
	Messages []schema.Message // the whole prompt; a system message comes first if there are instructions
	Tools    []schema.Tool    // what the model sees; none: the provider is asked without tools
	Options  schema.JSONText  // an object of the provider's request options, such as {"temperature": 0}
	Delta    func(Delta)      // where pieces go while the answer arrives; nil: do not stream
}

// Delta is a piece of an answer that is still arriving. It is for eyes only: what counts is the Response.
type Delta struct {
	Text      string
	Reasoning string
}

// Response is a model's whole answer.
type Response struct {
	Text   string
	Calls  []schema.RawCall // in the order the model gave them; none when Finish is FinishRefused: a filter cut them
	Items  *schema.Items    // what must be sent back unchanged
	Finish schema.Finish
	Usage  schema.Usage // Input counts the whole prompt, what came from a cache too
	Model  string       // the model that answered, in the provider's words
	Unfit  []Unfit      // tools of the request that the model was not shown
}

// Unfit is a tool that the model was not shown, since its provider would have refused the whole request with it.
type Unfit struct {
	Tool   string
	Source string // as in schema.Tool
	Why    string // for people
}

// ErrEnd is returned by a recorded model that has no further answers.
var ErrEnd = errors.New("end of transcript")

// Kind says what a caller can do about a failed request.
type Kind string

// The kinds of failure.
const (
	RateLimited Kind = "rate_limited"     // wait (RetryAfter), ask again
	Unavailable Kind = "unavailable"      // 5xx, a broken connection or stream: ask again
	Auth        Kind = "auth"             // the key is missing or refused
	Overflow    Kind = "context_overflow" // the prompt is too large for the model
	Refused     Kind = "refused"          // the provider refused the request's content
	BadRequest  Kind = "bad_request"      // anything else that asking again does not mend
)

// Error is a failed request to a provider.
type Error struct {
	Kind       Kind
	Status     int           // HTTP status; 0: there was none
	RetryAfter time.Duration // what the provider asked for; 0: it did not
	Message    string        // for people: what happened and what to do
	Err        error
}

func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("model: %s (HTTP %d): %s", e.Kind, e.Status, e.Message)
	}
	return fmt.Sprintf("model: %s: %s", e.Kind, e.Message)
}

func (e *Error) Unwrap() error { return e.Err }

// Temporary tells whether asking again may help.
func (e *Error) Temporary() bool { return e.Kind == RateLimited || e.Kind == Unavailable }
