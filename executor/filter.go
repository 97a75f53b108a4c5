package executor

import (
	"cmp"
	"context"
	"sync/atomic"

	"github.com/jetcrew/jetcrew/schema"
)

// FilterFunc decides whether a call goes on: Allow, Block, Guide or Fallback. It must be safe for concurrent use and
// changes nothing.
type FilterFunc func(ctx context.Context, call *schema.TurnCall) schema.Decision

// Allow lets a call go on.
func Allow() schema.Decision { return schema.Decision{Action: schema.ActionAllow} }

// Block stops a call: the model reads DENIED and the reason, or a general one if it is empty.
func Block(reason string) schema.Decision {
	return schema.Decision{Action: schema.ActionDeny, Text: cmp.Or(reason, "this agent may not make this call")}
}

// Guide stops a call and tells the model what to change: it reads GUIDANCE, the feedback, and that it may try again.
func Guide(feedback string) schema.Decision {
	return schema.Decision{Action: schema.ActionGuide, Text: feedback}
}

// Fallback stops a call and points the model at something else: it reads REDIRECT, the suggestion, and to use it.
func Fallback(suggestion string) schema.Decision {
	return schema.Decision{Action: schema.ActionRedirect, Text: suggestion}
}

// Predicate is the filter of a plain condition: it blocks the calls for which may is false. tool is the name by which
// the tool's queue knows it; numbers in args are json.Number.
func Predicate(may func(tool string, args map[string]any) bool) FilterFunc {
	return func(_ context.Context, call *schema.TurnCall) schema.Decision {
		args, err := Arguments(call.Args)
		if err != nil || !may(targetOf(call), args) {
			return Block("")
		}
		return Allow()
	}
}

// Arguments decodes the arguments of a call; numbers are json.Number.
func Arguments(args schema.JSONText) (map[string]any, error) {
	if args == "" || args == "{}" {
		return map[string]any{}, nil
	}
	into := map[string]any{}
	if err := decodeArgs(args, &into); err != nil {
		return nil, err
	}
	return into, nil
}

// Filter is the one filter of an agent, a guard that stands before policies: a call that it stops reaches neither them
// nor a listener. It can be replaced while runs go on; the zero Filter allows every call.
type Filter struct{ current atomic.Pointer[FilterFunc] }

// NewFilter returns a filter that decides by f; nil allows every call.
func NewFilter(f FilterFunc) *Filter {
	filter := new(Filter)
	filter.Replace(f)
	return filter
}

// Replace lets calls from now on be decided by f; nil allows every call. Calls of turns that are written already keep
// their decision.
func (f *Filter) Replace(with FilterFunc) {
	if with == nil {
		f.current.Store(nil)
		return
	}
	f.current.Store(&with)
}

// Decide asks the present function. Its decision names the rule "filter" where it names none.
func (f *Filter) Decide(ctx context.Context, call *schema.TurnCall) schema.Decision {
	current := f.current.Load()
	if current == nil {
		return schema.Decision{}
	}
	args, bound := call.Args, call.Bound
	d := (*current)(ctx, call)
	call.Args, call.Bound = args, bound
	if d.Ends() {
		d.Rule = cmp.Or(d.Rule, "filter")
	}
	return d
}

// Authorize decides about an approved call, too: its arguments may be edited, and the filter replaced.
func (f *Filter) Authorize(ctx context.Context, call *schema.TurnCall) schema.Decision {
	return f.Decide(ctx, call)
}

// Settle changes nothing.
func (*Filter) Settle(context.Context, *schema.TurnCall, *schema.Result) (string, bool) {
	return "", false
}
