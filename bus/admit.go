package bus

import (
	"math/rand/v2"
	"time"
)

// admission is what decides about a delivery before anything is written; admit holds the rules, free of time and
// network.
type admission struct {
	inTable, sameSeq               bool // the call is worked on here already; as the same message
	hasResult                      bool // only looked up after the first delivery
	hasTool                        bool
	callIdempotent, toolIdempotent bool
	first, expired                 bool
	attempts, limit                int
}

type admitted int

const (
	admitRun      admitted = iota
	admitDone              // it has its result: acknowledge
	admitCopy              // another copy of what runs here: acknowledge, settle nothing
	admitBusy              // the same message, running here: give back
	admitNoTool            // give back
	admitStricter          // the worker's declaration is stricter than the call's: give back
	admitExpired           // settle as not started
	admitLost              // too many attempts: settle as lost
)

func (a admission) admit() admitted {
	switch {
	case a.inTable && a.sameSeq:
		return admitBusy
	case a.inTable:
		return admitCopy
	case a.hasResult:
		return admitDone
	case a.attempts > a.limit:
		return admitLost
	case a.expired:
		return admitExpired
	case !a.hasTool:
		return admitNoTool
	case a.callIdempotent && !a.toolIdempotent && !a.first:
		return admitStricter
	}
	return admitRun
}

// retryDelay is how long a transient failure waits before attempt+1: it grows and is jittered, so that an outage
// shorter than the attempts does not use them up at once.
func retryDelay(attempt int) time.Duration {
	d := min(500*time.Millisecond<<min(attempt-1, 6), 30*time.Second)
	return d/2 + rand.N(d)
}
