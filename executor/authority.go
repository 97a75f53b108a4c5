package executor

import (
	"context"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// Authority is the worker's check of a call's scopes, for an Execute that is not a Set's, which has it built in. tools
// are the definitions that it runs, each with its queue; their own effects count, whatever the call says. required
// refuses calls that state no authority. It may only deny.
func Authority(required bool, tools ...schema.Tool) Wrapper {
	known := make(map[string]schema.Tool, len(tools))
	for _, t := range tools {
		known[t.Name] = t
	}
	return func(next Execute) Execute {
		return func(ctx context.Context, call *schema.Call) (schema.Result, *schema.Pending) {
			t := known[call.Tool]
			if why := outside(call, authority{t.Queue, t.Effect, required}); why != "" {
				return refuse(ctx, call, denied(why))
			}
			return next(ctx, call)
		}
	}
}

// authority is what a call is measured against.
type authority struct {
	queue, effect string // of the tool, as its worker knows it
	required      bool
}

// outside says why the call's scopes do not allow it here and now, "" when they do.
func outside(call *schema.Call, a authority) string {
	if len(call.Principal.Scopes) == 0 {
		if a.required {
			return "this call states no authority, and its worker runs none without"
		}
		return ""
	}
	scoped := schema.Scoped{Queue: a.queue, Tool: call.Tool, Effect: a.effect, Tenant: call.Principal.Tenant}
	return schema.Permits(call.Principal.Scopes, scoped, time.Now())
}
