package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/schema"
)

// shownCall is a call with all that was recorded of it.
type shownCall struct {
	Turn   int             `json:"turn"`
	Index  int             `json:"index"`
	Call   schema.TurnCall `json:"call"`
	Asks   []shownAsk      `json:"asks,omitempty"`   // what a person is asked about it
	Begins []schema.Begin  `json:"begins,omitempty"` // starts of a run-once call: at most one
	Backs  []schema.Back   `json:"backs,omitempty"`  // deliveries given back without a start
	Result *schema.Result  `json:"result,omitempty"` // absent: the call is open
	View   *string         `json:"view,omitempty"`   // what the memory shows instead of the output
}

// shownAsk is a question about a call, and its answer.
type shownAsk struct {
	N       int             `json:"n"`
	Ask     schema.Ask      `json:"ask"`
	Verdict *schema.Verdict `json:"verdict,omitempty"` // absent: it is open
}

func (c *shownCall) apply(f schema.Fact) {
	switch f.Key.Kind {
	case schema.KindAsk:
		if a, ok := decoded[schema.Ask](f); ok {
			c.Asks = append(c.Asks, shownAsk{N: f.Key.K, Ask: a})
		}
	case schema.KindVerdict:
		if v, ok := decoded[schema.Verdict](f); ok {
			for i := range c.Asks {
				if c.Asks[i].N == f.Key.K {
					c.Asks[i].Verdict = &v
				}
			}
		}
	case schema.KindBegin:
		if b, ok := decoded[schema.Begin](f); ok {
			c.Begins = append(c.Begins, b)
		}
	case schema.KindBack:
		if b, ok := decoded[schema.Back](f); ok {
			c.Backs = append(c.Backs, b)
		}
	case schema.KindResult:
		if r, err := schema.DecodeResult(f.Data); err == nil {
			c.Result = r
		}
	case schema.KindView:
		if v, ok := decoded[schema.View](f); ok {
			c.View = &v.Text
		}
	}
}

func (c *shownCall) row() []string {
	row := []string{fmt.Sprintf("%d.%d", c.Turn, c.Index), dash(word(c.Call.Tool)), word(c.Call.Queue), dash(word(string(c.Call.Decision.Action))), c.outcome(), "-", "-", "-", "-"}
	if r := c.Result; r != nil {
		row[5] = dash(word(r.Worker))
		if r.Delivery > 0 {
			row[6] = strconv.FormatUint(r.Delivery, 10)
		}
		if r.StartedMS > 0 {
			row[7], row[8] = view.Millis(r.QueuedMS), view.Millis(r.EndedMS-r.StartedMS)
		}
	}
	return row
}

func (c *shownCall) outcome() string {
	switch {
	case c.Result == nil:
		return "open"
	case c.Result.OK:
		return "ok"
	case c.Result.Error != nil:
		return word(string(c.Result.Error.Type))
	}
	return "failed"
}

func (c *shownCall) lines() []string {
	var lines []string
	say := func(name, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%-10s %s", name, fmt.Sprintf(format, args...)))
	}
	if c.Call.Tool == "" {
		say("call", "%d.%d on queue %s, made outside any turn: only how it went is recorded", c.Turn, c.Index, word(c.Call.Queue))
	} else {
		c.decided(say)
	}
	for _, a := range c.Asks {
		a.say(say)
	}
	for _, b := range c.Backs {
		say("back", "by %s: %s", word(b.Instance), word(b.Reason))
	}
	for _, b := range c.Begins {
		say("begun", "by %s, delivery %d of message %d", word(b.Instance), b.Delivery, b.Seq)
	}
	say("reached", "%s", c.reached())
	say("outcome", "%s", c.outcome())
	switch {
	case c.View != nil:
		say("memory", "%s", view.Clean(*c.View))
		say("", "(a guard put this in place of the output)")
	case c.Result != nil:
		say("memory", "%s", view.Clean(c.Result.Output))
	}
	if r := c.Result; r != nil && r.Size > 0 {
		say("", "(of %d bytes)", r.Size)
	}
	return lines
}

// say says what was asked and what came of it.
func (a *shownAsk) say(say func(name, format string, args ...any)) {
	say("asked", "a person, until %s: %s", clock(a.Ask.ExpiresMS), word(strings.TrimSpace(a.Ask.Rule+" "+a.Ask.Text)))
	if a.Ask.Edited != "" {
		say("", "(with other arguments: %s)", view.Clean(string(a.Ask.Edited)))
	}
	v := a.Verdict
	if v == nil {
		return
	}
	say("verdict", "%s", word(verdictLine(v)))
	if v.Args != "" {
		say("", "(with other arguments: %s)", view.Clean(string(v.Args)))
	}
}

// verdictLine is a verdict without its arguments.
func verdictLine(v *schema.Verdict) string {
	line := v.Decision
	if v.By != "" {
		line += " by " + v.By
	}
	if v.Why != "" {
		line += ": " + v.Why
	}
	return line
}

// waits tells whether nobody has answered the last question.
func (c *shownCall) waits() bool {
	return len(c.Asks) > 0 && c.Asks[len(c.Asks)-1].Verdict == nil
}

// decided says what the turn has of the call.
func (c *shownCall) decided(say func(name, format string, args ...any)) {
	once := "run-once"
	if c.Call.Idempotent {
		once = "idempotent"
	}
	say("call", "%d.%d, %s by the model", c.Turn, c.Index, word(c.Call.Label))
	say("tool", "%s, %s, queue %s", word(c.Call.Tool), once, c.Call.Queue)
	if c.Call.Raw != "" {
		say("raw", "%s", view.Clean(c.Call.Raw))
	}
	for _, note := range c.Call.Notes {
		say("wrapped", "%s", view.Clean(note))
	}
	say("arguments", "%s", view.Clean(string(c.Call.Args)))
	if c.Call.Bound != "" {
		say("bound", "%s", view.Clean(string(c.Call.Bound)))
	}
	d := c.Call.Decision
	say("decided", "%s", word(strings.Join([]string{string(d.Action), d.Rule, string(d.Type), d.Text}, " ")))
}

// reached says whether the tool was reached, as far as anybody knows.
func (c *shownCall) reached() string {
	r := c.Result
	switch {
	case r != nil && r.StartedMS > 0:
		return fmt.Sprintf("yes: %s ran it in delivery %d, after %s in the queue, for %s", word(r.Worker), r.Delivery, view.Millis(r.QueuedMS), view.Millis(r.EndedMS-r.StartedMS))
	case len(c.Begins) > 0:
		return "perhaps: it began, and its worker did not say how it went on"
	case c.Call.Tool == "" && r != nil:
		return "nobody says"
	case c.waits() && r == nil:
		return "not yet: a person is asked"
	case c.Call.Decision.Action == schema.ActionAsk && r != nil && r.Error != nil && r.Error.Type == schema.Denied:
		return "no: it was refused"
	case c.Call.Tool != "" && c.Call.Decision.Action != schema.ActionAllow && c.Call.Decision.Action != schema.ActionAsk:
		return "no: it was decided before"
	case r != nil && !c.Call.Idempotent:
		return "no: it has no begin"
	case r != nil:
		return "nobody says: an idempotent call has no begin"
	}
	return "not yet, as far as is recorded"
}
