package bus

import (
	"testing"
	"time"
)

// TestPatienceWithAServer: a server is left once no publish was answered for AckWait, and later each time that helped nobody.
func TestPatienceWithAServer(t *testing.T) {
	t.Parallel()
	var c contact
	at := time.Unix(1000, 0)
	if c.late(at) {
		t.Error("late without a publish")
	}
	for _, patience := range []time.Duration{1, 2, 4, 8, 8} {
		patience *= AckWait
		c.unanswered(at)
		c.unanswered(at.Add(patience / 2)) // one more changes nothing
		if c.late(at.Add(patience - 1)) {
			t.Errorf("late before %v", patience)
		}
		if !c.late(at.Add(patience)) || c.late(at.Add(patience)) {
			t.Errorf("not late, once, after %v", patience)
		}
		c.moves.Add(1)
	}
	c.unanswered(at)
	c.answered()
	if c.late(at.Add(time.Hour)) {
		t.Error("late though a stream has answered")
	}
	c.unanswered(at)
	if !c.late(at.Add(AckWait)) {
		t.Error("still as patient as after the moves that an answer has ended")
	}
}
