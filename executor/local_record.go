package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// record writes the call's result. One that is there already is the call's outcome; this one came late.
func (c *localCall) record(r schema.Result) (schema.Result, error) {
	return c.recordUnless(r, schema.Key{})
}

func (c *localCall) recordUnless(r schema.Result, unless schema.Key) (schema.Result, error) {
	r.Worker, r.Delivery, r.EndedMS = c.instance, 1, time.Now().UnixMilli()
	if r.StartedMS == 0 {
		r.Delivery = 0
	}
	switch err := c.append(c.key(), &r, unless); {
	case err == nil:
		return c.asRecorded(r)
	case errors.Is(err, schema.ErrExists):
		return c.result(context.WithoutCancel(c.Ctx))
	case errors.Is(err, schema.ErrGuarded):
		return c.unknown()
	default:
		return schema.Result{}, fmt.Errorf("local call %s: %w", c.Call, err)
	}
}

// asRecorded returns what readers of the journal find: of a long output it holds head and tail.
func (c *localCall) asRecorded(r schema.Result) (schema.Result, error) {
	if len(r.Output) <= schema.MaxInline/2 {
		return r, nil
	}
	return c.result(context.WithoutCancel(c.Ctx))
}

// notStarted settles a call that does not start here: of a run-once call only while nobody has begun it.
func (c *localCall) notStarted(t schema.ErrorType, why string) (schema.Result, error) {
	unless := schema.Key{}
	if c.runOnce() {
		unless = schema.BeginKey(c.Call.Turn, c.Call.Index, c.Queue)
	}
	return c.recordUnless(c.Call.Fail(t, why), unless)
}

// unknown settles a run-once call that another process has begun, and that is not under way here.
func (c *localCall) unknown() (schema.Result, error) {
	return c.record(c.Call.Fail(schema.OutcomeUnknown, "the call was begun by a process that is gone; it may have taken effect"))
}

// result reads the result that is known to be recorded. A reading may be behind, so it is repeated.
func (c *localCall) result(ctx context.Context) (schema.Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	for {
		facts, err := c.journal.Facts(ctx, c.Call.Run, 0, schema.KindResult)
		for _, f := range facts {
			if f.Key == c.key() {
				return c.decode(f)
			}
		}
		if !pause(ctx, lookAgain) {
			return schema.Result{}, fmt.Errorf("local call %s: its result cannot be read: %w", c.Call, errors.Join(err, ctx.Err()))
		}
	}
}

// decode reads a recorded result. One that cannot be read is still the call's only one.
func (c *localCall) decode(f schema.Fact) (schema.Result, error) {
	r, err := schema.DecodeResult(f.Data)
	if err != nil {
		return c.Call.Failf(schema.ToolFailed, "the recorded result is unreadable: %v", err), nil
	}
	return *r, nil
}
