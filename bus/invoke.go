package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// Invoke runs one call of a tool outside any agent, on a run of its own: open, the call 1.0, close. The call's result
// says whether the tool succeeded; the error is trouble with the transport.
func (b *Bus) Invoke(ctx context.Context, tool schema.Tool, args schema.JSONText, p schema.Principal, within time.Duration) (schema.Result, error) {
	call := &schema.Call{
		Run: schema.NewID(), Turn: 1, Label: "call", Tool: tool.Name, Args: args, Principal: p,
		Effect: tool.Effect, Idempotent: tool.Idempotent, TimeoutMS: tool.TimeoutMS, Digest: tool.Digest,
	}
	return b.invoke(ctx, call, tool.Queue, within)
}

// invoke runs a call as the only one of its run.
func (b *Bus) invoke(ctx context.Context, call *schema.Call, queue string, within time.Duration) (schema.Result, error) {
	open := &schema.Open{Kind: schema.RunCall, Principal: call.Principal, AtMS: b.Now().UnixMilli()}
	if _, err := b.Append(ctx, call.Run, schema.OpenKey(), open, schema.Key{}); err != nil {
		return schema.Result{}, fmt.Errorf("call %s: %w", call.Tool, err)
	}
	r, err := b.Dispatch(ctx, call, queue, within)
	if err != nil {
		return r, fmt.Errorf("call %s: %w", call.Tool, err)
	}
	state := string(schema.ReasonDone)
	if r.Error != nil {
		state = string(r.Error.Type)
	}
	end := &schema.Close{State: state, Calls: 1, AtMS: b.Now().UnixMilli()}
	_, err = b.Append(context.WithoutCancel(ctx), call.Run, schema.CloseKey(), end, schema.SayKey(1))
	if err != nil {
		return r, fmt.Errorf("call %s: %w", call.Tool, err)
	}
	return r, nil
}
