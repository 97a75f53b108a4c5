package executor

import (
	"cmp"
	"context"

	"github.com/jetcrew/jetcrew/schema"
)

// Hook is a guard of two functions, each of which may be nil. Hooks of one agent stand in one list before its filter;
// the first decision other than to allow wins. A hook is not asked again about a call that a person approved: what must
// hold for edited arguments, too, belongs into the filter or the policy.
type Hook struct {
	Name string // for the record; default: hook
	// Before sees a call and allows it (Allow or the zero Decision), stops it (Block, Guide, Fallback), or sets call.Args,
	// which are then validated again.
	Before func(ctx context.Context, call *schema.TurnCall) schema.Decision
	// After sees the result of a call that was let through. It returns the text that the memory shows instead and true,
	// or false to leave it; see Withhold. The recorded result stays as it is.
	After func(ctx context.Context, call *schema.TurnCall, result *schema.Result) (view string, changed bool)
}

// Decide asks Before.
func (h *Hook) Decide(ctx context.Context, call *schema.TurnCall) schema.Decision {
	if h.Before == nil {
		return schema.Decision{}
	}
	args := call.Args
	d := h.Before(ctx, call)
	if !d.Ends() {
		if bad := canonicalArgs(call, args); bad.Ends() {
			d = bad
		}
	}
	if d.Action != "" && d.Action != schema.ActionAllow {
		d.Rule = cmp.Or(d.Rule, h.Name, "hook")
	}
	return d
}

// Settle asks After.
func (h *Hook) Settle(ctx context.Context, call *schema.TurnCall, result *schema.Result) (string, bool) {
	if h.After == nil {
		return "", false
	}
	return h.After(ctx, call, result)
}

// Withhold is what an After returns to keep an output from the model, which reads DENIED and the reason instead.
func Withhold(reason string) (view string, changed bool) { return schema.DeniedText(reason), true }
