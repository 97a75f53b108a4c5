package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"

	"github.com/jetcrew/jetcrew/schema"
)

// Values computes what a call gets beside its arguments. It must be safe for concurrent use; on whose behalf the run
// acts is in schema.SceneOf(ctx).
type Values func(ctx context.Context, call *schema.TurnCall) (map[string]any, error)

// Binding is a guard that fixes values on the server's side. Tools read them with BoundInto; the model neither sees
// nor sets them. It belongs behind the guards that change arguments.
type Binding struct {
	pattern string
	values  Values
}

// Bind returns the guard that gives values to the calls of the tools that pattern names, see schema.MatchTool. A call
// whose arguments hold a key that is bound is InvalidArguments. An error of values denies the call; it is logged, and the
// model does not read it. A blank pattern and nil values are programmers' mistakes and panic.
func Bind(pattern string, values Values) *Binding {
	if values == nil || strings.TrimSpace(pattern) == "" {
		panic(fmt.Sprintf("bind %q: the pattern or the function that gives the values is missing", pattern))
	}
	return &Binding{pattern, values}
}

// Decide sets call.Bound.
func (b *Binding) Decide(ctx context.Context, call *schema.TurnCall) schema.Decision {
	if !b.matches(call) {
		return schema.Decision{}
	}
	bound, err := b.bound(ctx, call)
	if err != nil {
		slog.Default().LogAttrs(ctx, slog.LevelError, "values of a call could not be bound", slog.String("run", schema.SceneOf(ctx).Run),
			slog.String("tool", schema.Cut(clean(call.Tool), 80)), slog.String("error", errorText(err)))
		return schema.Decision{Action: schema.ActionDeny, Rule: "bind", Text: "what this call is bound to could not be found out, so it did not run"}
	}
	if err := reserved(bound, call.Args); err != nil {
		return invalid("bind", err)
	}
	call.Bound = bound
	return schema.Decision{}
}

// Authorize refuses edited arguments that hold a key that is bound. The values stay those that were approved.
func (b *Binding) Authorize(_ context.Context, call *schema.TurnCall) schema.Decision {
	if err := reserved(call.Bound, call.Args); b.matches(call) && err != nil {
		return invalid("bind", err)
	}
	return schema.Decision{}
}

// Settle changes nothing.
func (*Binding) Settle(context.Context, *schema.TurnCall, *schema.Result) (string, bool) {
	return "", false
}

func (b *Binding) matches(call *schema.TurnCall) bool {
	return schema.MatchTool(b.pattern, call.Queue, targetOf(call))
}

// bound returns the values of call together with those that it has already.
func (b *Binding) bound(ctx context.Context, call *schema.TurnCall) (schema.JSONText, error) {
	values, err := b.compute(ctx, call)
	if err != nil || len(values) == 0 {
		return call.Bound, err
	}
	text, err := json.Marshal(values)
	if err != nil {
		return "", err
	}
	bound, _, bad := schema.Canonical(string(text))
	switch {
	case bad != nil:
		return "", bad
	case call.Bound == "" || call.Bound == emptyArgs:
		return bound, nil
	}
	if key := common(bound, call.Bound); key != "" {
		return "", fmt.Errorf("the value %q is bound by another guard, too", key)
	}
	return call.Bound[:len(call.Bound)-1] + "," + bound[1:], nil
}

func (b *Binding) compute(ctx context.Context, call *schema.TurnCall) (values map[string]any, err error) {
	defer func() {
		if v := recover(); v != nil {
			values, err = nil, fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	args, bound := call.Args, call.Bound
	defer func() { call.Args, call.Bound = args, bound }()
	return b.values(ctx, call)
}

const emptyArgs schema.JSONText = "{}"

// canonicalBound returns bound values in their one form, empty for none. They are refused when they are no object, or
// hold a key of the arguments.
func canonicalBound(bound, args schema.JSONText) (schema.JSONText, *schema.Error) {
	if bound == "" {
		return "", nil
	}
	text, _, err := schema.Canonical(string(bound))
	if err != nil {
		return "", &schema.Error{Type: err.Type, Message: "the bound values: " + err.Message}
	}
	return text, reserved(text, args)
}

// reserved refuses arguments with a key that is bound. Both are canonical.
func reserved(bound, args schema.JSONText) *schema.Error {
	if bound == "" {
		return nil
	}
	if key := common(bound, args); key != "" {
		return &schema.Error{Type: schema.InvalidArguments, Message: fmt.Sprintf("%q is set on the server's side; leave it out", key)}
	}
	return nil
}

// common returns a key of b that is one of a's, too, "" if there is none. Upper and lower case are the same: there are
// readers of JSON to which they are.
func common(a, b schema.JSONText) string {
	var few [16]string
	keys := few[:0]
	for key := range schema.Fields(a) {
		keys = append(keys, key)
	}
	for key := range schema.Fields(b) {
		for _, other := range keys {
			if strings.EqualFold(key, other) {
				return key
			}
		}
	}
	return ""
}
