package memory

import (
	"fmt"
	"strings"

	"github.com/jetcrew/jetcrew/schema"
)

// leftOut stands in for the beginning of a conversation that is too long to be handed on.
const leftOut = "[The beginning of this conversation was left out to save space.]"

// before is the conversation that the run goes on with. It wants r.mu held.
func (r *Run) before() []schema.Message {
	if o := lookup[schema.Open](r, schema.OpenKey()); o != nil {
		return o.Before
	}
	return nil
}

// least is the lowest number that a fold may have: 0 where there is something in front of turn 1. It wants r.mu held.
func (r *Run) least() int {
	if len(r.before()) > 0 {
		return 0
	}
	return 1
}

// Rounds returns how many turns stand in the prompt, with those of the conversation that the run goes on with.
func (r *Run) Rounds() (n int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if f := r.newest(); f != nil {
		return r.turns - f.N
	}
	for _, m := range r.before() {
		if m.Role == schema.RoleAssistant {
			n++
		}
	}
	return n + r.turns
}

// Conversation returns what another run goes on with: Messages without the instructions and without what was said of
// limits, which are over. Of a conversation of more than tokens by Estimate the newest part is kept; 0: all of it.
func (r *Run) Conversation(tokens int64) []schema.Message {
	r.mu.RLock()
	defer r.mu.RUnlock()
	b := prompt{run: r, fold: r.newest(), handed: true}
	if b.fold != nil {
		b.folded()
	} else {
		b.msgs = append(b.msgs, r.before()...)
	}
	b.extend(r.turns)
	return latest(relabelled(b.msgs), tokens)
}

// drops tells whether a message is not handed on.
func (b *prompt) drops(s *schema.Say) bool {
	return b.handed && strings.HasPrefix(s.Source, schema.SourceLimit)
}

// latest returns the end of a conversation that takes no more than tokens. It begins behind the results of a turn.
func latest(msgs []schema.Message, tokens int64) []schema.Message {
	if tokens <= 0 || Estimate(msgs) <= tokens {
		return msgs
	}
	mark := schema.Message{Role: schema.RoleUser, Text: leftOut}
	tokens -= Estimate([]schema.Message{mark})
	from := len(msgs)
	for i := len(msgs) - 1; i >= 0 && Estimate(msgs[i:]) <= tokens; i-- {
		if msgs[i].Role != schema.RoleTool {
			from = i
		}
	}
	return append([]schema.Message{mark}, msgs[from:]...)
}

// relabelled returns messages in which labels that this project makes itself are none that a turn of another run has:
// providers refuse a history in which two calls have one label.
func relabelled(msgs []schema.Message) []schema.Message {
	out, names := make([]schema.Message, len(msgs)), map[string]string{}
	for i, m := range msgs {
		calls := m.Calls
		if len(calls) > 0 {
			names, m.Calls = map[string]string{}, make([]schema.MessageCall, len(calls))
		}
		for k, c := range calls {
			if schema.OwnLabel(c.Label) {
				names[c.Label] = fmt.Sprintf("%s%d_%d", schema.LabelBefore, i, k)
				c.Label = names[c.Label]
			}
			m.Calls[k] = c
		}
		if name, ok := names[m.Label]; ok && m.Role == schema.RoleTool {
			m.Label = name
		}
		out[i] = m
	}
	return out
}

// paired tells whether each call of the messages is followed by its result, in call order, and each result follows its
// call.
func paired(msgs []schema.Message) bool {
	var open []schema.MessageCall
	for _, m := range msgs {
		switch {
		case m.Role == schema.RoleTool:
			if len(open) == 0 || open[0].Label != m.Label {
				return false
			}
			open = open[1:]
		case len(open) > 0:
			return false
		default:
			open = m.Calls
		}
	}
	return len(open) == 0
}
