package bustest

import (
	"testing"
	"time"
)

// Patience bounds every wait of a test for something that must happen: generous, for a machine that does much else.
const Patience = 30 * time.Second

// Eventually waits until something is so, and fails the test when it does not become so within Patience.
func Eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !so() {
		select {
		case <-deadline.C:
			t.Fatalf("not within %v: %s", Patience, what)
		case <-look.C:
		}
	}
}
