package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// An attempt of a sub-agent's call is a run of its own. Its owner opens the next one where it would else write the
// parent's result:
//
//	attempt k fails ── open of attempt k+1 ── its task as say.1 ─────── close of attempt k
//	                   (guarded: no result)   (guarded: no stop of k;
//	                                           it wakes attempt k+1)
//
// Whoever is killed on the way has attempt k taken over, which does all that again, and what is there already stays. Who
// stops the call stops every attempt that is open, from the first on. A stop that comes before the task of the next one
// refuses that, and is handed on; one that comes later finds that attempt.

// errAttempt ends the work on an attempt whose time is over.
var errAttempt = errors.New(schema.WhyAttempt)

// attemptEnd is when the time of an attempt is over; zero: it has none of its own.
func attemptEnd(o *schema.Open) (at time.Time) {
	if o != nil && o.Handoff != nil && o.Handoff.TimeoutMS > 0 {
		at = time.UnixMilli(o.AtMS + o.Handoff.TimeoutMS)
	}
	return at
}

// over is when the time of the run is over, as its call or as an attempt; zero: never.
func (r *Run) over() time.Time {
	p := &parking{at: attemptEnd(r.state.Open())}
	if o := r.state.Open(); o != nil && o.DeadlineMS > 0 {
		p.earlier(time.UnixMilli(o.DeadlineMS))
	}
	return p.at
}

// dueBy has a parked attempt woken when its time is over.
func (r *Run) dueBy(t schema.Taken) schema.Taken {
	if end := attemptEnd(r.state.Open()); !end.IsZero() && !r.toldToStop() {
		p := &parking{at: t.At}
		p.earlier(end)
		t.At = p.at
	}
	return t
}

// withinAttempt returns a context that stops the run when the time of its attempt is over. If that is so already, the
// stop is written here.
func (r *Run) withinAttempt(ctx context.Context) (context.Context, context.CancelFunc, error) {
	end := attemptEnd(r.state.Open())
	switch {
	case end.IsZero() || r.toldToStop():
		return ctx, func() {}, nil
	case time.Now().Before(end):
		ctx, cancel := context.WithDeadlineCause(ctx, end, errAttempt)
		return ctx, cancel, nil
	}
	slot := &schema.Ctl{Act: schema.CtlStop, Instance: r.agent.cfg.Instance, Why: schema.WhyAttempt, AtMS: nowMS()}
	err := r.write(ctx, schema.CtlKey(r.own+1), slot, schema.Key{})
	if errors.Is(err, schema.ErrExists) {
		if err = r.refused(ctx); errors.Is(err, ErrStopped) {
			err = nil
		}
	}
	if err != nil {
		return ctx, nil, err
	}
	r.heardStop.Do(func() { close(r.stopped) })
	return ctx, func() {}, nil
}

// timedOut tells whether nothing but the end of the attempt's time has stopped the run.
func (r *Run) timedOut() bool { return r.toldToStop() && !r.stoppedByOthers() }

// stoppedByOthers tells whether somebody wants the call to end, not only this attempt.
func (r *Run) stoppedByOthers() bool {
	for k := 1; k <= r.state.Ctls(); k++ {
		if c := r.state.Ctl(k); c.Act == schema.CtlStop && c.Why != schema.WhyAttempt {
			return true
		}
	}
	return false
}

// retries tells whether another attempt is to follow one that came out as res.
func (r *Run) retries(open *schema.Open, res *schema.Result) bool {
	h := open.Handoff
	switch {
	case h == nil || res.OK || h.Attempt > h.Retries || r.givenUp != "" || r.stoppedByOthers() || r.taskSay() == nil:
		return false
	case open.DeadlineMS > 0 && nowMS() >= open.DeadlineMS:
		return false
	}
	_, ok := rest(open.Budget, r.spent(1))
	return ok
}

// taskSay is the message that holds the run's task, nil when nobody has said it.
func (r *Run) taskSay() *schema.Say {
	for k := 1; k <= r.state.Says(); k++ {
		if s := r.state.Say(k); strings.HasPrefix(s.Source, schema.SourceCall) || strings.HasPrefix(s.Source, schema.SourceRetry) {
			return s
		}
	}
	return nil
}

// rest is what is left of a budget; false: nothing.
func rest(b schema.Budget, s schema.Spent) (left schema.Budget, ok bool) {
	ok = true
	if b.Steps > 0 {
		left.Steps = max(0, b.Steps-s.Steps)
		ok = ok && left.Steps > 0
	}
	if b.Tokens > 0 {
		left.Tokens = max(0, b.Tokens-s.Usage.Total())
		ok = ok && left.Tokens > 0
	}
	if b.Cost > 0 {
		left.Cost = max(0, b.Cost-s.Cost)
		ok = ok && left.Cost > 0
	}
	return left, ok
}

// again opens the next attempt and tells it its task. It returns false when the call has been stopped meanwhile, or when
// there is no room for a run.
func (r *Run) again(ctx context.Context, open *schema.Open, spent schema.Spent) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBound)
	defer cancel()
	p, h, next := open.Parent, *open.Handoff, *open
	h.Attempt, h.Spent = h.Attempt+1, spent
	next.Handoff, next.AtMS = &h, nowMS()
	next.Budget, _ = rest(open.Budget, r.spent(1))
	run := schema.ChildRun(p.Run, p.Turn, p.Index, h.Attempt)
	unless := schema.ResultKey(p.Turn, p.Index, schema.QueueAgents)
	unless.Run = p.Run
	_, err := r.agent.cfg.Journal.Append(ctx, run, schema.OpenKey(), &next, unless)
	switch {
	case errors.Is(err, schema.ErrGuarded):
		return true, nil // the call is settled
	case errors.Is(err, schema.ErrNoRoom):
		return false, nil // what this attempt came to stays the outcome
	case err != nil && !errors.Is(err, schema.ErrExists):
		return false, fmt.Errorf("open attempt %d: %w", h.Attempt, err)
	}
	source := fmt.Sprintf(schema.SourceRetry+"%s.%d.%d.%d", p.Run, p.Turn, p.Index, h.Attempt)
	err = r.tellNext(ctx, run, &schema.Say{Role: schema.RoleUser, Text: r.taskSay().Text, Source: source, AtMS: nowMS()})
	if !errors.Is(err, schema.ErrGuarded) {
		return err == nil, err
	}
	if err := r.refused(ctx); !errors.Is(err, ErrStopped) {
		return false, err
	}
	return false, r.stopNext(ctx, run)
}

// tellNext tells the next attempt its task, unless this one has been stopped or taken by another owner: ErrGuarded. A
// task that is told already stays.
func (r *Run) tellNext(ctx context.Context, run string, s *schema.Say) error {
	unless := schema.CtlKey(r.state.Ctls() + 1)
	unless.Run = r.id
	for k := 1; ; k++ {
		_, err := r.agent.cfg.Journal.Append(ctx, run, schema.SayKey(k), s, unless)
		switch {
		case err == nil, errors.Is(err, schema.ErrGuarded):
			return err
		case !errors.Is(err, schema.ErrExists):
			return fmt.Errorf("tell run %s its task: %w", run, err)
		}
		if told, err := r.told(ctx, run, s.Source); told || err != nil {
			return err
		}
	}
}

// told tells whether another run has a message of a source, or is over.
func (r *Run) told(ctx context.Context, run, source string) (bool, error) {
	facts, err := r.agent.cfg.Journal.Facts(ctx, run, 0, schema.KindSay, schema.KindClose)
	if err != nil {
		return false, fmt.Errorf("look at run %s: %w", run, err)
	}
	for _, f := range facts {
		var s schema.Say
		if f.Key.Kind == schema.KindClose || schema.Decode(f.Data, &s) == nil && s.Source == source {
			return true, nil
		}
	}
	return false, nil
}

// stopOpened stops the next attempt of a call that was stopped, if an owner opened that and was lost before it told its task.
func (r *Run) stopOpened(ctx context.Context, open *schema.Open) error {
	h, p := open.Handoff, open.Parent
	if h == nil || h.Attempt > h.Retries || !r.stoppedByOthers() {
		return nil
	}
	run := schema.ChildRun(p.Run, p.Turn, p.Index, h.Attempt+1)
	facts, err := r.agent.cfg.Journal.Facts(ctx, run, 0, schema.KindOpen)
	if err != nil || len(facts) == 0 {
		return err
	}
	return r.stopNext(ctx, run)
}

// stopNext hands a stop on to the next attempt, unless that is over.
func (r *Run) stopNext(ctx context.Context, run string) error {
	slot := &schema.Ctl{Act: schema.CtlStop, Instance: r.agent.cfg.Instance, Why: "the call was stopped", AtMS: nowMS()}
	for k := 1; ; k++ {
		_, err := r.agent.cfg.Journal.Append(ctx, run, schema.CtlKey(k), slot, schema.CloseKey())
		switch {
		case err == nil, errors.Is(err, schema.ErrGuarded):
			return nil
		case !errors.Is(err, schema.ErrExists):
			return fmt.Errorf("stop run %s: %w", run, err)
		}
	}
}
