package loop

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"

	"github.com/jetcrew/jetcrew/schema"
)

// logTaken says that this process works on the run from now on, and who did before.
func (r *Run) logTaken(ctx context.Context) {
	attrs := []any{"run", r.id, "agent", r.agent.cfg.Agent.ID}
	if from := r.ownerBefore(); from == "" {
		attrs = append(attrs, "new", true)
	} else {
		attrs = append(attrs, "from", from, "turns", r.state.Turns())
	}
	r.log(ctx, slog.LevelInfo, "run taken", attrs...)
}

// ownerBefore returns the instance of the last owner before this one, empty if there was none.
func (r *Run) ownerBefore() string {
	for k := r.own - 1; k > 0; k-- {
		if c := r.state.Ctl(k); c != nil && c.Act == schema.CtlOwn {
			return c.Instance
		}
	}
	return ""
}

// logLeft says why this process does not work on the run any more. That another owner has it is said by whoever holds
// the message.
func (r *Run) logLeft(ctx context.Context, t schema.Taken) {
	c := r.state.Closed()
	switch {
	case t.Act == schema.TakenParked && t.At.IsZero():
		r.log(ctx, slog.LevelInfo, "run parked", "run", r.id)
	case t.Act == schema.TakenParked:
		r.log(ctx, slog.LevelInfo, "run parked", "run", r.id, "until", t.At)
	case t.Act == schema.TakenBusy && t.After == 0:
		r.log(ctx, slog.LevelInfo, "run handed back", "run", r.id)
	case t.Act == schema.TakenBusy:
		r.log(ctx, slog.LevelWarn, "run dropped, it comes again", "run", r.id, "reason", t.Reason)
	case t.Act != schema.TakenLeave && c != nil:
		r.log(ctx, slog.LevelInfo, "run closed", "run", r.id, "state", c.State, "turns", c.Turns, "calls", c.Calls)
	}
}

func (r *Run) log(ctx context.Context, level slog.Level, text string, attrs ...any) {
	r.agent.cfg.Logger.Log(trace.ContextWithSpan(ctx, r.span), level, text, attrs...)
}
