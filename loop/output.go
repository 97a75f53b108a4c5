package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sourcegraph/conc/panics"

	"github.com/jetcrew/jetcrew/schema"
)

// Outputs reads what a recorded result holds only head and tail of. It may be called concurrently and must return when
// ctx ends.
type Outputs interface {
	// ReadOutput returns a part of the whole output of r, a result of queue: at most limit bytes from offset on, moved
	// to whole characters, and where it begins. It is empty at the end.
	ReadOutput(ctx context.Context, queue string, r *schema.Result, offset, limit int64) (text string, from int64, err error)
}

const (
	partBytes    = 32 << 10         // that read_output reads when it is not told how many
	maxPart      = 128 << 10        // that it reads at most
	partTimeout  = 30 * time.Second // for one reading
	partPatience = int64(partTimeout / time.Millisecond)
)

// readOutputTool is a tool that the owner of a run executes itself: it needs nothing but the run. Its calls have
// the queue none, and no message is sent.
var readOutputTool = schema.Tool{
	Name: schema.ToolReadOutput,
	Description: "Reads a part of the output of an earlier call of which the middle was left out. " +
		"The line in its place says which call that is and where the gap begins.",
	Parameters: `{"type":"object","properties":{` +
		`"call":{"type":"string","pattern":"^[0-9]+\\.[0-9]+$","description":"The call as the line says, such as 3.0"},` +
		`"offset":{"type":"integer","minimum":0,"description":"First byte to read; 0 if absent"},` +
		`"limit":{"type":"integer","minimum":1,"maximum":131072,"description":"How many bytes to read; 32768 if absent"}},` +
		`"required":["call"],"additionalProperties":false}`,
	Idempotent: true, Effect: schema.EffectRead, TimeoutMS: partPatience, Queue: schema.QueueNone,
}.WithDigest()

// isOwn tells whether a call of tool on queue is executed by the owner of the run.
func isOwn(tool, queue string) bool {
	return queue == schema.QueueNone && (tool == schema.ToolReadOutput || tool == schema.ToolFindTools)
}

// withReadOutput offers the tool beside others, unless one of them has its name, once there is something to read.
func (x *exchange) withReadOutput(tools []schema.Tool) []schema.Tool {
	if x.agent.cfg.Outputs == nil || !x.state.Gaps() || named(schema.ToolReadOutput, tools) != nil {
		return tools
	}
	return append(tools[:len(tools):len(tools)], readOutputTool)
}

// executeHere executes a call of a tool of the owner's own.
func (x *exchange) executeHere(ctx context.Context, call *schema.Call, within time.Duration) (schema.Result, error) {
	if within <= 0 || within > partTimeout {
		within = partTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	started := nowMS()
	var r schema.Result
	var catch panics.Catcher
	catch.Try(func() { r = x.runOwn(ctx, call) })
	if p := catch.Recovered(); p != nil {
		x.agent.cfg.Logger.Error("a tool of the loop's own panicked", "run", x.id, "call", call.String(), "panic", p.Value, "stack", string(p.Stack))
		r = call.Fail(schema.Panic, "the tool panicked")
	}
	r.StartedMS, r.EndedMS = started, nowMS()
	return x.claim(call, schema.QueueNone, r, schema.Key{})
}

// ownTool returns what executes a call of the owner's own, and what it says when it cannot.
func (x *exchange) ownTool(call *schema.Call) (run func(context.Context, *schema.Call) (string, error), cannot string) {
	if call.Tool == schema.ToolFindTools {
		return x.findMore, "the tools cannot be listed now"
	}
	return x.readPart, "the rest of that output is not kept any more, or cannot be reached now"
}

func (x *exchange) runOwn(ctx context.Context, call *schema.Call) schema.Result {
	run, cannot := x.ownTool(call)
	text, err := run(ctx, call)
	var e *schema.Error
	switch {
	case err == nil:
		return call.Done(text)
	case errors.As(err, &e):
		return call.Fail(e.Type, e.Message)
	case ctx.Err() != nil:
		return call.Fail(schema.Cancelled, "it did not end in time")
	}
	x.agent.cfg.Logger.Warn("a tool of the loop's own failed", "run", x.id, "call", call.String(), "error", err)
	return call.Fail(schema.ToolFailed, cannot)
}

func (x *exchange) readPart(ctx context.Context, call *schema.Call) (string, error) {
	in := struct {
		Call          string `json:"call"`
		Offset, Limit int64
	}{Limit: partBytes}
	if err := json.Unmarshal([]byte(call.Args), &in); err != nil {
		return "", wrong("offset and limit are whole numbers of bytes")
	}
	r, queue, err := x.cutResult(in.Call)
	if err != nil {
		return "", err
	}
	if in.Offset >= r.Size {
		return "", wrong("offset %d is beyond the end: of that output %d bytes are kept", in.Offset, r.Size)
	}
	text, from, err := x.agent.cfg.Outputs.ReadOutput(ctx, queue, r, in.Offset, min(in.Limit, maxPart))
	if err != nil {
		return "", err
	}
	to, more := from+int64(len(text)), "the end"
	if to < r.Size {
		more = fmt.Sprintf("go on with offset %d", to)
	}
	return fmt.Sprintf("[bytes %d to %d of %d; %s]\n%s", from, to, r.Size, more, schema.CleanText(text)), nil
}

// cutResult returns the result that name means, turn.index, and its queue. What a guard has changed stays hidden.
func (x *exchange) cutResult(name string) (*schema.Result, string, error) {
	turn, index, _ := strings.Cut(name, ".")
	n, err1 := strconv.Atoi(turn)
	i, err2 := strconv.Atoi(index)
	r := x.state.Result(n, i)
	switch {
	case errors.Join(err1, err2) != nil || r == nil:
		return nil, "", wrong("there is no result of a call %.20q", name)
	case r.Blob == "":
		return nil, "", wrong("nothing was left out of the output of call %s", name)
	case x.state.View(n, i) != nil:
		return nil, "", &schema.Error{Type: schema.Denied, Message: "the output of that call was changed by a check, so there is no more of it to read"}
	}
	return r, x.state.Turn(n).Calls[i].Queue, nil
}

func wrong(format string, args ...any) *schema.Error {
	return &schema.Error{Type: schema.InvalidArguments, Message: fmt.Sprintf(format, args...)}
}
