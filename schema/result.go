package schema

import (
	"cmp"
	"fmt"
)

// Result is the one outcome of a call.
type Result struct {
	Payload
	Run       string `msgpack:"run" json:"run"`                                   // of the call
	Turn      int    `msgpack:"turn" json:"turn"`                                 // of the call
	Index     int    `msgpack:"index" json:"index"`                               // of the call
	OK        bool   `msgpack:"ok" json:"ok"`                                     // the tool did what was asked
	Output    string `msgpack:"output" json:"output"`                             // text; on failure the line that the model reads
	Error     *Error `msgpack:"error,omitempty" json:"error,omitempty"`           // nil when OK
	Aborts    bool   `msgpack:"aborts,omitempty" json:"aborts,omitempty"`         // the tool says that the run shall end with this failure
	Blob      string `msgpack:"blob,omitempty" json:"blob,omitempty"`             // digest of the whole output in the object store, when Output is only a part
	Size      int64  `msgpack:"size,omitempty" json:"size,omitempty"`             // bytes of the whole output when Output is only a part; without a blob it is not kept
	Worker    string `msgpack:"worker,omitempty" json:"worker,omitempty"`         // instance that wrote it
	Delivery  uint64 `msgpack:"delivery,omitempty" json:"delivery,omitempty"`     // delivery of the call that ran; 0: none did
	QueuedMS  int64  `msgpack:"queued_ms,omitempty" json:"queued_ms,omitempty"`   // from stored to start, in milliseconds
	StartedMS int64  `msgpack:"started_ms,omitempty" json:"started_ms,omitempty"` // server clock, Unix milliseconds; 0: never started
	EndedMS   int64  `msgpack:"ended_ms,omitempty" json:"ended_ms,omitempty"`     // server clock, Unix milliseconds
	Spent     Spent  `msgpack:"spent,omitempty" json:"spent,omitzero"`            // of an agent's call
}

// Error says why a call failed.
type Error struct {
	Type    ErrorType `msgpack:"type" json:"type"`       // one of the error types
	Message string    `msgpack:"message" json:"message"` // for the model: no stack, no names of the implementation
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Type, e.Message) }

// Pending is what Execute returns when a call has no result yet.
type Pending struct {
	RetryAfterMS int64  // try again after so many milliseconds; 0: the caller's back-off
	Reason       string // why, for logs and facts
}

// DecodeResult reads the result of a call from its payload and makes its text valid UTF-8.
func DecodeResult(data []byte) (*Result, error) {
	var r Result
	if err := Decode(data, &r); err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	r.Output = CleanText(r.Output)
	if r.Error != nil {
		r.Error.Message = CleanText(r.Error.Message)
	}
	return &r, nil
}

// Done returns the result of a call that succeeded with output.
func (c *Call) Done(output string) Result {
	return Result{Run: c.Run, Turn: c.Turn, Index: c.Index, OK: true, Output: CleanText(output)}
}

// Fail returns the result of a call that failed: Output is the TOOL_ERROR line that the model reads.
func (c *Call) Fail(t ErrorType, message string) Result {
	e := &Error{Type: t, Message: CleanText(message)}
	return Result{Run: c.Run, Turn: c.Turn, Index: c.Index, Error: e, Output: ToolError(e, cmp.Or(c.As, c.Tool), c.Label)}
}

// Failf is Fail with a format.
func (c *Call) Failf(t ErrorType, format string, args ...any) Result {
	return c.Fail(t, fmt.Sprintf(format, args...))
}
