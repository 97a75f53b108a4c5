package loop

import (
	"crypto/sha256"
	"fmt"
	"strconv"

	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/schema"
)

// maxRepeats is how often an exchange may see the same: the third identical call with an identical result, and the
// third call of one unknown tool, end it.
const maxRepeats = 3

// tally counts what a model repeats within an exchange. Each thing counts once per turn: calls of one turn were made
// without having seen each other's results, so they are no loop.
type tally struct {
	seen     map[[32]byte]sight
	buf      []byte // of what is hashed, used again
	repeated bool
	text     string // what was repeated, for the model
}

// sight is how often something was seen, and in which turn last.
type sight struct{ times, turn int }

// add counts the calls of a settled turn.
func (t *tally) add(turn *schema.Turn, m *memory.Run) {
	if t.seen == nil {
		t.seen = make(map[[32]byte]sight, len(turn.Calls))
	}
	for i := range turn.Calls {
		c, r := &turn.Calls[i], m.Result(turn.N, i)
		if r == nil {
			continue
		}
		if t.third(turn.N, t.signature(c, r)) {
			t.end("The same call of %.80q with the same result was made %d times.", c.Tool)
		}
		if c.Decision.Type == schema.UnknownTool && t.third(turn.N, t.digest("unknown", c.Tool)) {
			t.end("%.80q was called %d times, and there is no such tool.", c.Tool)
		}
	}
}

// third tells whether what sig stands for has now been seen in maxRepeats turns.
func (t *tally) third(turn int, sig [32]byte) bool {
	s := t.seen[sig]
	if s.turn != turn {
		s.times, s.turn = s.times+1, turn
		t.seen[sig] = s
	}
	return s.times >= maxRepeats
}

func (t *tally) end(format, tool string) {
	if !t.repeated {
		t.repeated, t.text = true, fmt.Sprintf(format, tool, maxRepeats)
	}
}

// signature identifies a call with its result. The failure line of a call holds its label, which differs each time, so
// of a failure the type and the message count.
func (t *tally) signature(c *schema.TurnCall, r *schema.Result) [32]byte {
	args := string(c.Args)
	if c.Decision.Action == schema.ActionInvalid && c.Raw != "" {
		args = c.Raw // of what is no object, Args holds nothing
	}
	if r.Error != nil {
		return t.digest("failed", c.Tool, args, string(r.Error.Type), r.Error.Message)
	}
	return t.digest("ok", c.Tool, args, r.Output)
}

// digest hashes parts, each behind its length, so that no two lists of parts look alike.
func (t *tally) digest(parts ...string) [32]byte {
	t.buf = t.buf[:0]
	for _, p := range parts {
		t.buf = append(strconv.AppendInt(t.buf, int64(len(p)), 10), ':')
		t.buf = append(t.buf, p...)
	}
	return sha256.Sum256(t.buf)
}
