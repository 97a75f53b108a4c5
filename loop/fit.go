package loop

import (
	"fmt"

	"github.com/jetcrew/jetcrew/schema"
)

// Bounds on a turn, in bytes, so that its fact and each call fit where they have to.
const (
	maxTurn     = schema.MaxPayload // of a turn's fact
	maxTurnArgs = maxTurn - 1<<20   // of the arguments of all calls of a turn; the rest is for what else there is
	maxRaw      = 8 << 10           // of what is kept of arguments that were refused
	maxWhy      = 160               // of why a call was refused, where all of a turn's do not fit
	maxCalls    = 1 << 16           // elements of a list
)

// fit refuses the largest calls until the arguments of the turn are within their bound.
func fit(t *schema.Turn) {
	total := 0
	for i := range t.Calls {
		total += size(&t.Calls[i])
	}
	for total > maxTurnArgs {
		c := largest(t)
		total -= size(c)
		refuseLarge(c)
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

func refuseLarge(c *schema.TurnCall) {
	text := fmt.Sprintf("the arguments are %d bytes, and those of a turn have %d at most: send smaller ones, or in several turns", size(c), maxTurnArgs)
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
