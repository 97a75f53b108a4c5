package bus

import (
	"math/rand/v2"
	"time"
)

// admission is what decides about a delivery before anything is written; admit holds the rules, free of time and
// network.
type admission struct {
	inTable                        bool // the call is worked on here already, as this message or another copy
	hasResult                      bool // only looked up after the first delivery
	lost                           bool // its result says that its workers were lost
	hasTool                        bool
	callIdempotent, toolIdempotent bool
	first, expired                 bool
	attempts, limit                int
}

type admitted int

const (
	admitRun      admitted = iota
	admitDone              // it has its result: acknowledge
	admitDead              // it was given up, and whoever did it may not have come to the dead letter: bury
	admitBusy              // it is worked on here: give back
	admitNoTool            // give back
	admitStricter          // the worker's declaration is stricter than the call's: give back
	admitExpired           // settle as not started
	admitLost              // too many attempts: settle as lost
)

func (a admission) admit() admitted {
	switch {
	case a.inTable: // of two copies either may be the one whose begin stands
		return admitBusy
	case a.hasResult && a.lost && a.attempts > a.limit:
		return admitDead
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

// busyDelay is how long a message stays away whose call is worked on here already. It is jittered, so that several
// copies of a call do not come back together for ever.
func busyDelay() time.Duration { return AckWait/2 + rand.N(AckWait/2) }

// retryDelay is how long a transient failure waits before attempt+1: it grows and is jittered, so that an outage
// shorter than the attempts does not use them up at once.
func retryDelay(attempt int) time.Duration {
	d := min(500*time.Millisecond<<min(attempt-1, 6), 30*time.Second)
	return d/2 + rand.N(d)
}
