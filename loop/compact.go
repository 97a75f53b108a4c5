package loop

import (
	"context"
	"errors"
	"time"

	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

// After a compaction that failed or did not help, so many turns pass before a trigger sets off the next one: firstPause,
// doubled each time up to maxPause.
const (
	firstPause = 4
	maxPause   = 64
)

// pause keeps the triggers from setting off compactions that would fail again.
type pause struct{ turns, until int }

func (p *pause) note(turn int, failed bool) {
	if !failed {
		*p = pause{}
		return
	}
	p.turns = min(max(firstPause, 2*p.turns), maxPause)
	p.until = turn + p.turns
}

// load is how much the next prompt takes, in tokens.
type load struct {
	used   int64 // of the whole request
	size   int64 // of the messages, by memory.Estimate
	budget int64 // what used should stay below
}

// load measures the next prompt: by what the model counted in the last turn, if that saw the same fold, and by an
// estimate of what came since; else by an estimate of all.
func (x *exchange) load(tools []schema.Tool) load {
	spec := &x.agent.cfg.Agent
	window, ratio := spec.Model.ContextWindow, spec.Compaction.ContextRatio
	if window == 0 {
		window = schema.DefaultContextWindow
	}
	if ratio == 0 {
		ratio = 1
	}
	msgs := x.state.Messages()
	l := load{size: memory.Estimate(msgs), budget: max(1, int64(ratio*float64(window)))}
	if t := x.state.Turn(x.state.Turns()); t != nil && t.Usage.Input > 0 && saw(t, x.state.Fold()) {
		since := len(msgs)
		for since > 0 && msgs[since-1].Role != schema.RoleAssistant {
			since--
		}
		l.used = t.Usage.Total() + memory.Estimate(msgs[since:])
		return l
	}
	bytes := 0
	for i := range tools {
		bytes += len(tools[i].Name) + len(tools[i].Description) + len(tools[i].Parameters)
	}
	l.used = l.size + int64(bytes/4)
	return l
}

// saw tells whether a turn was asked for with f, the newest fold.
func saw(t *schema.Turn, f *schema.Fold) bool { return f == nil || f.Turns < t.N }

// target is the size, by memory.Estimate, that the kept messages may have: half of the budget, so that the next
// compaction is not due soon. A prompt that was too large shrinks by half whatever the budget says, for that is wrong then.
func (l load) target(trigger string) int64 {
	used := max(1, l.used)
	if trigger == schema.TriggerOverflow {
		used = max(used, l.budget)
	}
	return int64(float64(l.size) / float64(used) * float64(l.budget) / 2)
}

// folded returns the last turn that is compacted, 0 while none is.
func (x *exchange) folded() int {
	if f := x.state.Fold(); f != nil {
		return f.N
	}
	return 0
}

// compactIfDue compacts the memory before turn n when a trigger says so.
func (x *exchange) compactIfDue(ctx context.Context, n int, tools []schema.Tool) error {
	c := x.agent.cfg.Agent.Compaction
	if c == nil || n < x.pause.until {
		return nil
	}
	trigger := ""
	switch {
	case c.MaxTurns > 0 && x.state.Rounds() >= c.MaxTurns:
		trigger = schema.TriggerTurns
	case c.ContextRatio > 0:
		if l := x.load(tools); l.used >= l.budget {
			trigger = schema.TriggerRatio
		}
	}
	if trigger == "" {
		return nil
	}
	_, err := x.compact(ctx, n, trigger, tools)
	return err
}

// compact writes a fold before turn n, and tells whether the memory is smaller now. A failure to make one leaves the
// run as it was. The error is trouble with the run: it has been taken, or stopped, or the journal is gone.
func (x *exchange) compact(ctx context.Context, n int, trigger string, tools []schema.Tool) (smaller bool, err error) {
	c := x.agent.cfg.Agent.Compaction
	if c == nil {
		return false, nil
	}
	l := x.load(tools)
	least := 1 // the model has not seen its results yet
	if trigger == schema.TriggerOverflow {
		least = 0 // and it cannot
	}
	f := x.state.Plan(least, c.Keep(), l.target(trigger))
	if f == nil {
		return false, nil
	}
	f.Own, f.Strategy, f.Trigger = x.own, c.Strategy, trigger
	began := time.Now()
	info := CompactionInfo{Strategy: c.Strategy, Trigger: trigger, UpTo: f.N, Tokens: l.used}
	x.emit(Event{Type: EventCompactionStart, Turn: n, Compaction: new(info)})
	ctx, span := tracing.StartCompaction(ctx, x.id, n, c.Strategy)
	failed := x.summarise(ctx, f, l.target(trigger), l.budget)
	if failed == nil {
		f.AtMS = nowMS()
		err = x.guarded(schema.FoldKey(f.N), f)
	} else {
		x.agent.cfg.Logger.Warn("the memory was not compacted", "run", x.id, "turn", n, "trigger", trigger, "error", failed)
	}
	why := errors.Join(failed, err) // one of them at most
	tracing.End(span, why)
	end := Event{Type: EventCompactionEnd, Turn: n, ElapsedMS: time.Since(began).Milliseconds()}
	if why != nil {
		end.Error = why.Error()
	} else {
		info.Tokens = x.load(tools).used
		end.Text, end.Usage = f.Text, &f.Usage
	}
	x.pause.note(n, why != nil || info.Tokens >= l.budget) // what stays is too large: another fold would not help
	end.Compaction = &info
	x.emit(end)
	return why == nil, err
}
