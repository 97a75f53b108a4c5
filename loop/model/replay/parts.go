package replay

import (
	"strings"

	"github.com/jetcrew/jetcrew/schema"
)

// Exchange is a stretch of a transcript: what the user says, and the turns that answer it.
type Exchange struct {
	Says  []string // in order; empty only when the transcript begins with the assistant
	First int      // first turn of the answer, from 1
	Last  int      // last turn; below First when the transcript ends before any answer
}

// Exchanges cuts the transcript into what a driver plays: it says Says, lets the agent run up to turn Last, and goes
// on with the next. Messages of the user that follow each other belong to one exchange.
func (t *Transcript) Exchanges() []Exchange {
	var out []Exchange
	turn := 0
	spoke := false // the last message that counts was the user's
	for _, m := range t.Messages {
		switch m.Role {
		case schema.RoleUser:
			if !spoke {
				out = append(out, Exchange{First: turn + 1, Last: turn})
			}
			last := &out[len(out)-1]
			last.Says = append(last.Says, string(m.Content))
			spoke = true
		case schema.RoleAssistant:
			turn++
			if len(out) == 0 {
				out = append(out, Exchange{First: 1})
			}
			out[len(out)-1].Last = turn
			spoke = false
		}
	}
	return out
}

// System returns the instructions: the system messages, joined by blank lines.
func (t *Transcript) System() string {
	var texts []string
	for _, m := range t.Messages {
		if m.Role == schema.RoleSystem {
			texts = append(texts, string(m.Content))
		}
	}
	return strings.Join(texts, "\n\n")
}

// Turns returns how many answers of the model are recorded.
func (t *Transcript) Turns() int {
	n := 0
	for _, m := range t.Messages {
		if m.Role == schema.RoleAssistant {
			n++
		}
	}
	return n
}

// Says returns what the user says before turn n, from 1, and after the turn before it; for the turn after the last:
// what the user says at the end.
func (t *Transcript) Says(n int) []string {
	var out []string
	turn := 1
	for _, m := range t.Messages {
		switch {
		case m.Role == schema.RoleAssistant:
			turn++
		case m.Role == schema.RoleUser && turn == n:
			out = append(out, string(m.Content))
		}
	}
	return out
}

// Calls returns the calls of turn n, from 1, as recorded; none: the turn is an answer, or there is no such turn.
func (t *Transcript) Calls(n int) []schema.RawCall {
	i := t.find(n)
	if i < 0 {
		return nil
	}
	return rawCalls(t.Messages[i].ToolCalls)
}

// Output returns the recorded output of the call with an index, from 0, in turn n, from 1; ok is false when there is
// none. It is found by position: ids repeat in real recordings.
func (t *Transcript) Output(n, index int) (text string, ok bool) {
	i := t.find(n)
	if i < 0 || index < 0 {
		return "", false
	}
	for _, m := range t.Messages[i+1:] {
		switch {
		case m.Role == schema.RoleAssistant:
			return "", false
		case m.Role != schema.RoleTool:
		case index == 0:
			return string(m.Content), true
		default:
			index--
		}
	}
	return "", false
}

// ToolDefs returns the definitions of the tools, with digests of their schemas without white space.
func (t *Transcript) ToolDefs() []schema.Tool {
	out := make([]schema.Tool, len(t.Tools))
	for i, d := range t.Tools {
		var params schema.JSONText
		if len(d.Parameters) > 0 {
			_ = params.UnmarshalJSON(d.Parameters) // it was read as JSON
		}
		out[i] = schema.Tool{Name: d.Name, Description: d.Description, Parameters: params}.WithDigest()
	}
	return out
}

// find returns the place of the n-th assistant message, or -1.
func (t *Transcript) find(n int) int {
	for i, m := range t.Messages {
		if m.Role == schema.RoleAssistant {
			if n--; n == 0 {
				return i
			}
		}
	}
	return -1
}

func rawCalls(in []ToolCall) []schema.RawCall {
	var out []schema.RawCall
	for _, c := range in {
		out = append(out, schema.RawCall{ID: c.ID, Name: c.Function.Name, Args: string(c.Function.Arguments)})
	}
	return out
}
