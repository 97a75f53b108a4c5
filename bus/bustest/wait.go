package bustest

import (
	"fmt"
	"testing"
	"time"
)

// Patience bounds every wait of a test for something that must happen: generous, for a machine that does much else.
const Patience = 30 * time.Second

// Eventually waits until something is so, and fails the test when it does not become so within Patience.
func Eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	if err := await(what, so); err != nil {
		t.Fatal(err)
	}
}

func await(what string, so func() bool) error {
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !so() {
		select {
		case <-deadline.C:
			return fmt.Errorf("not within %v: %s", Patience, what)
		case <-look.C:
		}
	}
	return nil
}
