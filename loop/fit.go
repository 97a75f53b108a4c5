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
	maxTurn     = 1<<20 - 16<<10            // of a turn's fact; the rest of a message is for its subject and headers
	maxWhy      = 160                       // of why a call was refused, where all of a turn's do not fit
	maxCalls    = 1 << 16                   // elements of a list
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

// trim makes the fact of a turn fit into a message, whatever the model wrote: what was refused says less, what only
// the provider reads is left out, and the text is cut. An answer that does not fit even then is an error.
func trim(t *schema.Turn) error {
	if weight(t) <= maxTurn {
		return nil
	}
	for _, less := range []func(t *schema.Turn, excess int){sayLess, dropItems, cutText} {
		over, err := excess(t)
		if err != nil || over <= 0 {
			return err
		}
		less(t, over)
	}
	over, err := excess(t)
	if err == nil && over > 0 {
		err = fmt.Errorf("the model's answer has %d calls, which is more than one turn can record", len(t.Calls))
	}
	return err
}

// weight is at least the size of a turn's fact, and costs less than encoding it.
func weight(t *schema.Turn) int {
	const turn, call = 1 << 10, 384 // keys and numbers
	n := turn + len(t.Text)
	if t.Items != nil {
		n += len(t.Items.Data)
	}
	for i := range t.Calls {
		c := &t.Calls[i]
		n += call + size(c) + len(c.Label) + len(c.Tool) + len(c.Source) + len(c.Digest) + len(c.Decision.Text)
		for _, note := range c.Notes {
			n += len(note) + 8
		}
	}
	return n
}

// excess is by how much the fact of a turn is too large.
func excess(t *schema.Turn) (int, error) {
	data, err := schema.Encode(t)
	return len(data) - maxTurn, err
}

func sayLess(t *schema.Turn, _ int) {
	for i := range t.Calls {
		if c := &t.Calls[i]; c.Decision.Action != schema.ActionAllow {
			c.Raw, c.Decision.Text = "", schema.Cut(c.Decision.Text, maxWhy)
		}
	}
}

func dropItems(t *schema.Turn, _ int) { t.Items = nil }

func cutText(t *schema.Turn, excess int) {
	if t.Text == "" {
		return
	}
	note := fmt.Sprintf("\n\n[This answer was %d bytes long; the rest of it did not fit.]", len(t.Text))
	t.Text = schema.Cut(t.Text, max(0, len(t.Text)-excess-len(note))) + note
}
