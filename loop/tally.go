package loop

import (
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/schema"
)

// maxRepeats is how often an exchange may see the same: the third identical call with an identical result, and the
// third call of one unknown tool, end it.
const maxRepeats = 3

// tally counts what a model repeats within an exchange. Each thing counts once per turn: calls of one turn were made
// without having seen each other's results, so they are no loop.
type tally struct {
	counts   map[[32]byte]int
	repeated bool
	text     string // what was repeated, for the model
}

// add counts the calls of a settled turn.
func (t *tally) add(turn *schema.Turn, m *memory.Run) {
	if t.counts == nil {
		t.counts = make(map[[32]byte]int)
	}
	seen := make(map[[32]byte]bool)
	for i := range turn.Calls {
		c, r := &turn.Calls[i], m.Result(turn.N, i)
		if r == nil {
			continue
		}
		t.count(seen, signature(c, r), fmt.Sprintf("The same call of %.80q with the same result was made %d times.", c.Tool, maxRepeats))
		if c.Decision.Type == schema.UnknownTool {
			t.count(seen, digest("unknown", c.Tool), fmt.Sprintf("%.80q was called %d times, and there is no such tool.", c.Tool, maxRepeats))
		}
	}
}

func (t *tally) count(seen map[[32]byte]bool, sig [32]byte, text string) {
	if seen[sig] {
		return
	}
	seen[sig] = true
	t.counts[sig]++
	if t.counts[sig] >= maxRepeats && !t.repeated {
		t.repeated, t.text = true, text
	}
}

// signature identifies a call with its result. The failure line of a call holds its label, which differs each time, so
// of a failure the type and the message count.
func signature(c *schema.TurnCall, r *schema.Result) [32]byte {
	args := string(c.Args)
	if c.Decision.Action == schema.ActionInvalid && c.Raw != "" {
		args = c.Raw // of what is no object, Args holds nothing
	}
	if r.Error != nil {
		return digest("call", c.Tool, args, string(r.Error.Type), r.Error.Message)
	}
	return digest("call", c.Tool, args, "ok", r.Output)
}

// digest hashes parts so that no two lists of parts look alike.
func digest(parts ...string) (sum [32]byte) {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		io.WriteString(h, p)
	}
	h.Sum(sum[:0])
	return sum
}
