package bus

import "github.com/jetcrew/jetcrew/schema"

// The rules by which the owner of a call settles it, free of time and network. A call is in one of these phases:
//
//	waiting ──deadline, stop, queue full──► claiming ──refused: it began──► cancelling ──grace──► giving up
//	   │  (an idempotent call has no begin: it goes to cancelling at once)      │
//	   └────────────── a result fact ends every phase ─────────────────────────┘
//
// A copy that the full stream refused, of a call that has begun, changes nothing: back to waiting. Neither does that
// nobody serves the agent of a child that is open.
type ownerPhase int

const (
	phaseWaiting ownerPhase = iota
	phaseClaiming
	phaseCancelling
	phaseSettled
)

// ownerEvent is what happens to a call at its owner.
type ownerEvent int

const (
	evPublished ownerEvent = iota // the call is on its way to the work stream
	evFull                        // the work stream refused it
	evTooLarge                    // it does not fit into a message
	evUnsent                      // the caller wanted it ended before it was sent
	evUnserved                    // an agent's call: nobody serves the agent, though it was looked for
	evDeadline                    // the call's deadline passed
	evStop                        // the caller wants it ended
	evGuarded                     // the claim "not started" was refused: it began
	evRepeat                      // time to repeat the cancel hint
	evGrace                       // the wait after the cancel is over
	evSettled                     // a result is known
)

// ownerAction is what the owner does next.
type ownerAction int

const (
	doWait      ownerAction = iota
	doClaim                 // write a result that claims the call did not start, guarded on its begin
	doCancel                // tell the workers to end it, then wait
	doStopChild             // write the child run's stop, then wait
	doGiveUp                // write a result, guarded on nothing
	doReturn
)

// ownerState is the state of a call at its owner.
type ownerState struct {
	runOnce bool
	child   bool // it is a run of its own, which settles itself once it has begun
	missed  bool // what is claimed is that nobody serves the child's agent
	phase   ownerPhase
	fail    schema.ErrorType // type of the result that the owner would write now
}

func (s *ownerState) on(ev ownerEvent) ownerAction {
	switch {
	case ev == evSettled:
		s.phase = phaseSettled
		return doReturn
	case s.phase == phaseWaiting:
		return s.onWaiting(ev)
	case s.phase == phaseClaiming && ev == evGuarded:
		return s.onBegun()
	case s.phase == phaseCancelling && ev == evRepeat && s.child:
		return doStopChild
	case s.phase == phaseCancelling && ev == evRepeat:
		return doCancel
	case s.phase == phaseCancelling && ev == evGrace:
		return doGiveUp
	}
	return doWait
}

func (s *ownerState) onWaiting(ev ownerEvent) ownerAction {
	switch ev {
	case evDeadline:
		s.fail = schema.Timeout
	case evUnserved:
		s.fail, s.missed = schema.NoWorker, true
	case evStop, evUnsent:
		s.fail = schema.Cancelled
	case evFull:
		s.fail = schema.QueueFull
	case evTooLarge:
		s.fail = schema.TooLarge
	default:
		return doWait
	}
	// A run-once call cannot start once its result is there; an idempotent one has no begin that could refuse the
	// claim, so it gets the grace to end by itself. What the stream does not have has nobody to wait for.
	if s.runOnce || ev == evFull || ev == evTooLarge || ev == evUnsent {
		s.phase = phaseClaiming
		return doClaim
	}
	s.phase = phaseCancelling
	return s.cancel()
}

// onBegun goes on with a run-once call whose claim was refused.
func (s *ownerState) onBegun() ownerAction {
	if s.fail == schema.QueueFull || s.missed {
		s.phase, s.fail, s.missed = phaseWaiting, "", false
		return doWait
	}
	if s.child {
		s.phase = phaseCancelling
		return doStopChild
	}
	ended := s.cancel()
	s.phase, s.fail = phaseCancelling, schema.OutcomeUnknown
	return ended
}

// cancel says a stop at once. At its deadline a call's worker ends it by itself: a hint that came a moment before
// would make a Cancelled of its Timeout, so the first one waits for evRepeat.
func (s *ownerState) cancel() ownerAction {
	if s.fail == schema.Cancelled {
		return doCancel
	}
	return doWait
}
