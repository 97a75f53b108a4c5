package executor

import (
	"context"
	"fmt"

	"github.com/jetcrew/jetcrew/schema"
)

// Call runs a tool of the set for code outside the loop, through the same wrappers and checks as Execute and under
// the same guard; args is the JSON text of an object, empty for none. The principal is that of ctx, see
// schema.WithScene. An error wraps a *schema.Error of the class
// that a model would read and, when the tool ran, the tool's own error or *PanicError. A Transient error is an error.
func (s *Set) Call(ctx context.Context, name string, args schema.JSONText) (string, error) {
	var cause error
	ctx = context.WithValue(ctx, reportKey{}, &cause)
	scene := schema.SceneOf(ctx)
	call := &schema.Call{Run: schema.NewID(), Tool: name, Args: args, Agent: scene.Agent, Principal: scene.Principal}
	res, pending := s.Execute(ctx, call)
	switch {
	case pending != nil:
		return "", fmt.Errorf("tool %q: not now: %s", schema.Cut(name, 80), pending.Reason)
	case res.OK:
		return res.Output, nil
	}
	return "", &callError{name: schema.Cut(name, 80), class: res.Error, cause: cause}
}

// callError is the class of a failed call and the error behind it, nil when a wrapper refused.
type callError struct {
	name  string
	class *schema.Error
	cause error
}

func (e *callError) Error() string { return fmt.Sprintf("tool %q: %v", e.name, e.class) }

func (e *callError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.class}
	}
	return []error{e.class, e.cause}
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
