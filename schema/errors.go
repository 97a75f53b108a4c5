package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// ErrorType classifies a failed call; it is the errorType of the TOOL_ERROR line.
type ErrorType string

// The error types that a model may read. Denied is the type of results whose text is DENIED, GUIDANCE or REDIRECT.
const (
	InvalidArguments ErrorType = "InvalidArguments" // the call's structure is wrong; it did not run
	UnknownTool      ErrorType = "UnknownTool"      // no such tool for this agent
	ToolFailed       ErrorType = "ToolFailed"       // the tool ran and said so
	Timeout          ErrorType = "Timeout"          // the deadline came first
	NoWorker         ErrorType = "NoWorker"         // nobody who has the tool took the call
	WorkerLost       ErrorType = "WorkerLost"       // its workers died, as often as the limit allows
	OutcomeUnknown   ErrorType = "OutcomeUnknown"   // it began, and nobody can say how it ended
	Cancelled        ErrorType = "Cancelled"        // the caller or the shutdown of its worker ended it
	Panic            ErrorType = "Panic"            // the tool crashed
	QueueFull        ErrorType = "QueueFull"        // the work stream took no further calls
	TooLarge         ErrorType = "TooLarge"         // the call or its output is larger than 64 MiB, or than its worker takes
	RateLimited      ErrorType = "RateLimited"      // a limit on calls was reached
	Denied           ErrorType = "Denied"           // stopped before it ran
)

// Errors of writing a fact. A writer branches on them; whatever else comes is trouble with the transport.
var (
	// ErrExists: another fact has the key already, and facts never change.
	ErrExists = errors.New("fact exists")
	// ErrGuarded: the fact that must be absent exists, so the write was refused.
	ErrGuarded = errors.New("refused by a guarding fact")
	// ErrNoRoom: the bus is too full for a new run. Runs under way go on.
	ErrNoRoom = errors.New("no room for a new run")
)

// maxErrorText bounds the message inside a TOOL_ERROR line, in bytes, so that a failing tool cannot flood the model.
const maxErrorText = 4 << 10

// ToolError returns the line that the model reads when a call failed: TOOL_ERROR: and a JSON object with errorType,
// error, tool and callId. An empty message becomes the error type.
func ToolError(e *Error, tool, callID string) string {
	msg := strings.TrimSpace(CleanText(e.Message))
	if msg == "" {
		msg = string(e.Type)
	}
	line := struct {
		Type  ErrorType `json:"errorType"`
		Error string    `json:"error"`
		Tool  string    `json:"tool"`
		Call  string    `json:"callId"`
	}{e.Type, Cut(msg, maxErrorText), Cut(CleanText(tool), maxName), Cut(CleanText(callID), maxLabel)}
	var b bytes.Buffer
	b.WriteString("TOOL_ERROR: ")
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(line) // strings always encode
	return strings.TrimSuffix(b.String(), "\n")
}

// Cut returns s in at most max bytes, never inside a character; what is cut is marked with "...". Max is not negative.
func Cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	n := max - len("...")
	if n < 0 {
		return "..."[:max]
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "..."
}

// DeniedText, GuidanceText and RedirectText are what the model reads when a call was stopped before it ran.
func DeniedText(reason string) string { return "DENIED: " + reason }

func GuidanceText(feedback string) string {
	return "GUIDANCE: " + feedback + " Adjust the parameters and retry."
}

func RedirectText(suggestion string) string {
	return "REDIRECT: " + suggestion + " Use the alternative."
}
