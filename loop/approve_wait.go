package loop

import (
	"slices"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// wait notes that call i waits for the verdict on question k. It is told by tell.
func (q *questions) wait(i, k int, ask *schema.Ask) {
	if q.waiting[i] == k {
		return
	}
	q.waiting[i] = k
	q.untold = append(q.untold, Event{Type: EventApprovalRequested, Turn: q.turn.N, Call: q.info(i), Approval: q.approval(i, k, ask)})
	q.due.Reset(time.Until(q.expiry()))
}

// tell says what is asked. Whoever hears of it may leave at once, so the owner must know by then that it waits.
func (q *questions) tell() {
	for _, e := range q.untold {
		q.x.emit(e)
	}
	q.untold = nil
}

func (q *questions) info(i int) *CallInfo {
	c := &q.turn.Calls[i]
	return &CallInfo{Index: i, Label: c.Label, Tool: c.Tool, Queue: c.Queue, Args: c.Args}
}

func (q *questions) approval(i, k int, ask *schema.Ask) *ApprovalInfo {
	key := schema.AskKey(q.turn.N, i, k)
	return &ApprovalInfo{Ask: k, Digest: ask.Digest(q.x.id, key), Rule: ask.Rule, Why: ask.Text, Edited: ask.Edited, ExpiresMS: ask.ExpiresMS}
}

// look reads the verdicts that nobody has told of. Whoever answers may not have the newest: the next look will.
func (q *questions) look() error { return q.x.read(q.x.ctx, 0, schema.KindVerdict) }

// expiry returns when the next question expires.
func (q *questions) expiry() time.Time {
	var at time.Time
	for i, k := range q.waiting {
		ask, last := q.x.state.Ask(q.turn.N, i)
		if ask == nil || last != k {
			continue
		}
		if t := time.UnixMilli(ask.ExpiresMS); at.IsZero() || t.Before(at) {
			at = t
		}
	}
	return at
}

// Channels that never are ready while nothing waits.
func (q *questions) news() <-chan struct{} {
	if len(q.waiting) == 0 {
		return nil
	}
	return q.x.verdicts
}

func (q *questions) ticks() <-chan time.Time {
	if len(q.waiting) == 0 {
		return nil
	}
	return q.tick.C
}

func (q *questions) expired() <-chan time.Time {
	if len(q.waiting) == 0 {
		return nil
	}
	return q.due.C
}

// stops is ready when the run is stopped.
func (q *questions) stops() <-chan struct{} {
	if len(q.waiting) == 0 {
		return nil
	}
	return q.x.stop.calls.Done()
}

// consider takes a call on which a verdict is wanted one step further.
func (s *starter) consider(i int) {
	settled, err := s.questions.consider(i)
	switch {
	case err != nil:
		s.arrivals <- arrival{i: i, err: err} // as a call whose dispatch fails: it is the last that is heard of it
		s.running++
		s.trouble = err
		delete(s.questions.waiting, i)
	case settled:
		s.ready = append(s.ready, i)
		s.nursery.answered(i)
	default:
		s.nursery.asks(i, s.questions.waiting[i])
	}
}

// reconsider looks at all calls that wait for a verdict.
func (s *starter) reconsider() {
	s.questions.tools = nil // they may have changed while people thought
	for i := range s.order.turn.Calls {
		if _, waits := s.questions.waiting[i]; waits {
			s.consider(i)
		}
	}
	s.start()
}

// watchWaiting notes whether the turn waits for nothing but people.
func (s *starter) watchWaiting() {
	s.waiting.Store(s.running == 0 && !slices.ContainsFunc(s.ready, func(i int) bool { return !s.held(i) }) && len(s.questions.waiting) > 0)
}

// gone is ready when this process shall leave a run that waits for nothing but people.
func (s *starter) gone() <-chan struct{} {
	if !s.waiting.Load() || s.stop.calls.Err() != nil {
		return nil
	}
	return s.stop.model.Done()
}
