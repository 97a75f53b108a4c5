package loop

import (
	"fmt"

	"github.com/jetcrew/jetcrew/schema"
)

// Bounds on the arguments of a turn, in bytes, so that its fact and each call's message fit where they have to.
const (
	maxArgs     = schema.MaxInline - 16<<10 // of one call; the rest is for what else a call carries
	maxTurnArgs = 640 << 10                 // of all calls of a turn
	maxRaw      = 8 << 10                   // of what is kept of arguments that were refused
)

// fit refuses the calls that are too large: each one above its bound, then the largest until the turn is within its
// own.
func fit(t *schema.Turn) {
	total := 0
	for i := range t.Calls {
		c := &t.Calls[i]
		if size(c) > maxArgs {
			refuseLarge(c, maxArgs)
		}
		total += size(c)
	}
	for total > maxTurnArgs {
		c := largest(t)
		total -= size(c)
		refuseLarge(c, maxTurnArgs)
		total += size(c)
	}
}

func size(c *schema.TurnCall) int { return len(c.Args) + len(c.Bound) + len(c.Raw) }

func largest(t *schema.Turn) *schema.TurnCall {
	c := &t.Calls[0]
	for i := range t.Calls {
		if size(&t.Calls[i]) > size(c) {
			c = &t.Calls[i]
		}
	}
	return c
}

func refuseLarge(c *schema.TurnCall, limit int) {
	text := fmt.Sprintf("the arguments are %d bytes, and the limit is %d: send smaller ones, or in several calls", size(c), limit)
	c.Raw = schema.Cut(string(c.Args), maxRaw)
	c.Args, c.Bound = "{}", ""
	c.Decision = schema.Decision{Action: schema.ActionInvalid, Rule: "size", Type: schema.TooLarge, Text: text}
}
