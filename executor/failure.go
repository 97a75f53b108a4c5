package executor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jetcrew/jetcrew/schema"
)

// PanicError is the error of a tool that panicked.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // of the goroutine that panicked, for logs; never for a model
}

// newPanicError must be called while the panic's stack still stands, in the deferred function that recovered v.
func newPanicError(v any) *PanicError { return &PanicError{Value: v, Stack: debug.Stack()} }

// Error returns a text without stack and Go type names.
func (e *PanicError) Error() string {
	msg := ""
	switch v := e.Value.(type) {
	case runtime.Error: // its text names Go types
	case string:
		msg = v
	case error:
		msg = errorText(v)
	}
	msg, _, _ = strings.Cut(strings.TrimSpace(msg), "\n")
	if msg == "" {
		return "the tool panicked; its worker's log says where"
	}
	return "the tool panicked: " + schema.Cut(msg, 512)
}

// Unwrap returns the value if the tool panicked with an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

var (
	errExited     = errors.New("the tool ended its goroutine without a result")
	errNotStarted = errors.New("the call had ended before the tool started")
	errAbandoned  = errors.New("the tool did not stop and was given up")
	// errTimeout is the cause of a context that ended by the tool's own timeout.
	errTimeout = errors.New("tool timeout")
)

// Transient marks err as one that may be gone when the call is tried again after the given time (0: the caller's
// back-off). It makes a call of an idempotent tool pending; that of a run-once tool fails with it like with any
// other error, since nobody knows what the first try did. Transient(nil, …) is nil.
func Transient(err error, after time.Duration) error {
	if err == nil {
		return nil
	}
	return &transientError{err, after}
}

type transientError struct {
	error
	after time.Duration
}

func (e *transientError) Unwrap() error { return e.error }

// settle returns what the error of a tool means for its call. The error is a stranger's: a method of it that panics
// must not take the worker along.
func settle(ctx context.Context, r settling) (res schema.Result, pending *schema.Pending) {
	defer func() {
		if v := recover(); v != nil {
			res, pending = fail(r.call, schema.Panic, newPanicError(v).Error()), nil
		}
	}()
	marked := false
	if !crashed(r.err) {
		r.err, marked = aborts(r.err)
	}
	e := r.ended(ctx)
	if e == nil && !marked {
		if pending = r.pending(); pending != nil {
			return schema.Result{}, pending
		}
	}
	if e == nil {
		e = typed(r.err)
	}
	res = fail(r.call, e.Type, e.Message)
	res.Aborts = marked
	return res, nil
}

// settling is a run that ended with err.
type settling struct {
	call       *schema.Call
	err        error
	idempotent bool          // tool and call both say so
	timeout    time.Duration // of the tool; 0: none
}

// pending returns when to try again, nil when the run's error is the outcome of its call.
func (r settling) pending() *schema.Pending {
	var transient *transientError
	if !r.idempotent || crashed(r.err) || !errors.As(r.err, &transient) {
		return nil
	}
	return &schema.Pending{RetryAfterMS: transient.after.Milliseconds(), Reason: bound(errorText(r.err))}
}

// typed returns the class and the text of an error of a tool.
func typed(err error) *schema.Error {
	var e *schema.Error
	switch {
	case crashed(err):
		return &schema.Error{Type: schema.Panic, Message: err.Error()}
	case !errors.As(err, &e) || e == nil || e.Type == "":
		return &schema.Error{Type: schema.ToolFailed, Message: errorText(err)}
	case err == error(e): //nolint:errorlint // itself, not wrapped: a wrapping text is kept below
		return e
	}
	return &schema.Error{Type: e.Type, Message: errorText(err)}
}

// crashed tells whether the guard, rather than the tool, gave err: an error that a tool returned may wrap the panic
// of another tool.
func crashed(err error) bool {
	_, panicked := err.(*PanicError)    //nolint:errorlint // not wrapped, as said above
	return panicked || err == errExited //nolint:errorlint // not wrapped, as said above
}

// ended returns the error of a run whose context ended before the tool returned, nil when it did not.
func (r settling) ended(ctx context.Context) *schema.Error {
	if ctx.Err() == nil || crashed(r.err) {
		return nil
	}
	e := r.why(context.Cause(ctx))
	switch {
	case errors.Is(r.err, errNotStarted):
		e.Message += "; it did not start"
		return &e
	case !r.idempotent:
		e.Message += "; it may have taken effect"
	}
	if !errors.Is(r.err, ctx.Err()) && !errors.Is(r.err, context.Cause(ctx)) {
		e.Message += ": " + errorText(r.err) // what the tool says of its interrupted work
	}
	return &e
}

func (r settling) why(cause error) schema.Error {
	var e *schema.Error
	switch {
	case errors.As(cause, &e) && e != nil:
		return *e
	case errors.Is(cause, errTimeout):
		return schema.Error{Type: schema.Timeout, Message: fmt.Sprintf("no result within the tool's time limit of %v", r.timeout)}
	case errors.Is(cause, context.DeadlineExceeded):
		return schema.Error{Type: schema.Timeout, Message: "no result before the call's deadline"}
	case errors.Is(cause, context.Canceled):
		return schema.Error{Type: schema.Cancelled, Message: "the call was cancelled"}
	}
	return schema.Error{Type: schema.Cancelled, Message: "the call was cancelled: " + errorText(cause)}
}

// fail is Call.Fail with a text that is never empty, bounded, and without NUL; a denial keeps its own form.
func fail(call *schema.Call, t schema.ErrorType, message string) schema.Result {
	message = bound(clean(message))
	if strings.TrimSpace(message) == "" {
		message = emptyMessage(t)
	}
	if t == schema.Denied {
		r, _ := schema.Decision{Action: schema.ActionDeny, Text: message}.Outcome(call)
		return r
	}
	return call.Fail(t, message)
}

func denied(why string) *schema.Error { return &schema.Error{Type: schema.Denied, Message: why} }

func emptyMessage(t schema.ErrorType) string {
	if t == schema.ToolFailed {
		return "the tool failed and gave no reason"
	}
	return "no reason was given"
}

// errorText is err.Error() of an error that may be a nil pointer or panic; fmt answers for both.
func errorText(err error) string { return fmt.Sprint(err) }

// maxError bounds the text of a failure, in bytes: it is what fits into the line that the model reads.
const maxError = 4 << 10

// bound returns s with its head and tail kept when it is longer than maxError: what matters in a long error often
// stands at its end.
func bound(s string) string {
	const mark = "\n[...]\n"
	if len(s) <= maxError {
		return s
	}
	head := maxError / 4
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	tail := len(s) - (maxError - maxError/4 - len(mark))
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + mark + s[tail:]
}

// clean returns s as valid UTF-8 without NUL, which data bases and terminals choke on: both become U+FFFD.
func clean(s string) string {
	s = schema.CleanText(s)
	if strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(s, "\x00", "\uFFFD")
}
