package executor

import (
	"context"
	"errors"

	"github.com/jetcrew/jetcrew/schema"
)

// Custom returns a set of definitions whose calls exec runs, such as a gateway to another system. The set validates the
// calls of what it defines; other calls reach exec as they are, since the list of a default executor is not its own.
// Exec runs under the set's guard: a panic, a deadline and a handler that never returns are results like any other.
func (c Config) Custom(exec Execute, tools ...schema.Tool) (*Set, error) {
	list := make([]Tool, len(tools))
	for i, def := range tools {
		list[i] = Tool{Tool: def, Run: notHere}
	}
	if exec == nil {
		return nil, errors.New("tool set: an executor is missing")
	}
	set, err := c.NewSet(list...)
	if err != nil {
		return nil, err
	}
	return set.handOver(exec), nil
}

// notHere is the code of a definition that another executor runs.
func notHere(context.Context, *schema.Call) (string, error) {
	return "", &schema.Error{Type: schema.ToolFailed, Message: "the tool has no code here"}
}

// handOver returns a set like s whose calls exec runs.
func (s *Set) handOver(exec Execute) *Set {
	other := *s
	other.execute = func(ctx context.Context, call *schema.Call) (schema.Result, *schema.Pending) {
		tool := s.tools[call.Tool]
		if tool == nil {
			return s.foreign(ctx, exec, &Tool{}, call)
		}
		if err := s.outside(call); err != nil {
			return refuse(ctx, call, err)
		}
		if err := s.validator.Check(&tool.Tool, call.Args); err != nil {
			return refuse(ctx, call, err)
		}
		return s.foreign(ctx, exec, tool, call)
	}
	return &other
}

// foreign runs exec under the guard.
func (s *Set) foreign(ctx context.Context, exec Execute, tool *Tool, call *schema.Call) (schema.Result, *schema.Pending) {
	limit := timeout(call.TimeoutMS, tool.TimeoutMS)
	var cause error // of its own, since an exec that is given up may still write it
	inner := context.WithValue(context.WithValue(ctx, callKey{}, call), reportKey{}, &cause)
	if limit > 0 {
		var cancel context.CancelFunc
		inner, cancel = context.WithTimeoutCause(inner, limit, errTimeout)
		defer cancel()
	}
	var res schema.Result
	var pending *schema.Pending
	err := errNotStarted
	if inner.Err() == nil {
		_, err = s.guard.do(inner, &Tool{Run: func(ctx context.Context, call *schema.Call) (string, error) {
			res, pending = exec(ctx, call)
			return "", nil
		}}, call)
	}
	if err != nil { // an abandoned exec may still write its result: it is not looked at
		report(ctx, err)
		return settle(inner, settling{call: call, err: err, idempotent: call.Idempotent, timeout: limit})
	}
	if cause != nil {
		report(ctx, cause)
	}
	res.Run, res.Turn, res.Index = call.Run, call.Turn, call.Index
	return res, pending
}
