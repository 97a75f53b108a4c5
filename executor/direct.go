package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/jetcrew/jetcrew/schema"
)

// ErrUnknownTool: a set has no tool of that name.
var ErrUnknownTool = errors.New("there is no such tool")

// Lookup returns the definition with exactly this name; found is false when the set has none. Unlike a model's name it
// is not repaired.
func (s *Set) Lookup(name string) (t schema.Tool, found bool) {
	tool := s.tools[name]
	if tool == nil {
		return schema.Tool{}, false
	}
	return tool.Tool, true
}

// Call runs a tool of the set for code outside the loop, through the same wrappers and checks as Execute and under
// the same guard; args is the JSON text of an object, empty for none. The principal is that of ctx, see
// schema.WithScene. An error is a *CallError. A Transient error is an error.
func (s *Set) Call(ctx context.Context, name string, args schema.JSONText) (string, error) {
	var cause error
	ctx = context.WithValue(ctx, reportKey{}, &cause)
	scene := schema.SceneOf(ctx)
	call := &schema.Call{Run: schema.NewID(), Tool: name, Args: args, Agent: scene.Agent, Principal: scene.Principal}
	res, pending := s.Execute(ctx, call)
	if pending == nil && res.OK {
		return res.Output, nil
	}
	e := &CallError{Tool: schema.Cut(name, 80), Call: call.String(), Class: res.Error, Cause: cause}
	switch {
	case pending != nil:
		e.Class = &schema.Error{Type: schema.ToolFailed, Message: "not now: " + pending.Reason}
	case s.tools[name] == nil && e.Class != nil && e.Class.Type == schema.UnknownTool:
		e.Cause = ErrUnknownTool
	}
	return "", e
}

// CallError is why a call from code failed. errors.Is and errors.As find the class, the cause and, for a name that the
// set does not have, ErrUnknownTool.
type CallError struct {
	Tool  string        // as it was called
	Call  string        // the call's identity, run/turn.index, as logs and Key show it
	Class *schema.Error // what a model would read
	Cause error         // the tool's own error, or *PanicError, or ErrUnknownTool; nil when a wrapper refused
}

func (e *CallError) Error() string {
	return fmt.Sprintf("tool %q, call %s: %v", e.Tool, e.Call, e.Class)
}

// Unwrap returns the class and the cause.
func (e *CallError) Unwrap() []error {
	var errs []error
	if e.Class != nil {
		errs = append(errs, e.Class)
	}
	if e.Cause != nil {
		errs = append(errs, e.Cause)
	}
	return errs
}

type reportKey struct{}

// report tells Call, if it is the caller, the Go error behind a failed result.
func report(ctx context.Context, err error) {
	if cause, _ := ctx.Value(reportKey{}).(*error); cause != nil {
		*cause = err
	}
}

// withoutReport hides the report from calls that the tool itself makes with its context.
func withoutReport(ctx context.Context) context.Context {
	if cause, _ := ctx.Value(reportKey{}).(*error); cause != nil {
		return context.WithValue(ctx, reportKey{}, (*error)(nil))
	}
	return ctx
}
