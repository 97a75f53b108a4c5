package loop

import (
	"testing"
	"time"
)

// Two runs that come back at one pace go to the same two processes in turn: the one that serves an agent may never see its run.
func TestCannotAfterVaries(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for range 100 {
		d := cannotAfter(100)
		if d <= cannotDelay/2 || d > cannotDelay {
			t.Fatalf("%v, want more than %v and at most %v", d, cannotDelay/2, cannotDelay)
		}
		seen[d] = true
	}
	if len(seen) < 50 {
		t.Errorf("%d different delays of 100: messages keep their pace", len(seen))
	}
}
