package playback

import (
	"fmt"

	"github.com/jetcrew/jetcrew/loop/model/replay"
	"github.com/jetcrew/jetcrew/schema"
)

// recorded returns the memory that a transcript stands for: the instructions, then what was said, called and returned.
func recorded(t *replay.Transcript) []schema.Message {
	var list []schema.Message
	if s := t.System(); s != "" {
		list = append(list, schema.Message{Role: schema.RoleSystem, Text: s})
	}
	for _, m := range t.Messages {
		if m.Role == schema.RoleSystem {
			continue
		}
		msg := schema.Message{Role: m.Role, Text: string(m.Content)}
		for _, c := range m.ToolCalls {
			msg.Calls = append(msg.Calls, schema.MessageCall{Name: c.Function.Name, Args: string(c.Function.Arguments)})
		}
		list = append(list, msg)
	}
	return list
}

// place is where in a transcript a message stands.
type place struct {
	turn, index int
	calls       []schema.MessageCall // of the turn as it was played
}

// next moves to message m.
func (p *place) next(m schema.Message) {
	switch m.Role {
	case schema.RoleAssistant:
		p.turn, p.index, p.calls = p.turn+1, -1, m.Calls
	case schema.RoleTool:
		p.index++
	default:
		p.index, p.calls = -1, nil
	}
}

func (p *place) differs(what, want, got string) Difference {
	d := Difference{Turn: p.turn, Index: p.index, What: what, Want: want, Got: got}
	if p.index >= 0 && p.index < len(p.calls) {
		d.Tool = p.calls[p.index].Name
	}
	return d
}

// compareMessages holds two memories against each other. Where they stop having the same shape, the rest says nothing.
func compareMessages(want, got []schema.Message) []Difference {
	var all []Difference
	at := &place{index: -1}
	for i := range min(len(want), len(got)) {
		at.next(got[i])
		if want[i].Role != got[i].Role {
			return append(all, at.differs("kind of message", want[i].Role, got[i].Role))
		}
		all = append(all, at.compare(want[i], got[i])...)
	}
	if len(want) != len(got) {
		all = append(all, at.differs("number of messages", fmt.Sprint(len(want)), fmt.Sprint(len(got))))
	}
	return all
}

func (p *place) compare(want, got schema.Message) []Difference {
	var all []Difference
	if w := schema.CleanText(want.Text); w != got.Text {
		all = append(all, p.differs(what(got.Role), w, got.Text))
	}
	if got.Role == schema.RoleTool && (p.index >= len(p.calls) || p.calls[p.index].Label != got.Label) {
		all = append(all, p.differs("call that the result belongs to", fmt.Sprintf("call %d", p.index), got.Label))
	}
	if len(want.Calls) != len(got.Calls) {
		return append(all, p.differs("number of calls", fmt.Sprint(len(want.Calls)), fmt.Sprint(len(got.Calls))))
	}
	for i := range want.Calls {
		all = append(all, p.compareCall(i, want.Calls[i], got.Calls[i])...)
	}
	return all
}

func (p *place) compareCall(i int, want, got schema.MessageCall) []Difference {
	var all []Difference
	name := got.Name
	differs := func(what, want, got string) {
		all = append(all, Difference{Turn: p.turn, Index: i, Tool: name, What: what, Want: want, Got: got})
	}
	if want.Name != got.Name {
		differs("tool", want.Name, got.Name)
	}
	// Arguments that were no object when they were recorded are {} in a memory; their result says so.
	if canon, _, bad := schema.Canonical(want.Args); bad == nil && string(canon) != got.Args {
		differs("arguments", string(canon), got.Args)
	}
	return all
}

func what(role string) string {
	if role == schema.RoleTool {
		return "output"
	}
	return "text of the " + role
}
