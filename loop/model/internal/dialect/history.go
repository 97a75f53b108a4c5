package dialect

import (
	"fmt"
	"strings"

	"github.com/jetcrew/jetcrew/schema"
)

// Texts that stand for nothing, which providers refuse.
const (
	NoOutput = "(no output)"
	NoAnswer = "(no answer)"
	noResult = "(no result was recorded)"
)

// Entry is one step of a history in a form that every provider accepts: all text is valid UTF-8, arguments are JSON
// objects, each call has an id that no other call of the history has, and exactly one result.
type Entry struct {
	Role    string // schema.RoleSystem, RoleUser or RoleAssistant
	Text    string
	Items   *schema.Items
	Calls   []Call
	Results []Result // of Calls, in their order
}

// Call is a call of an assistant's entry.
type Call struct {
	ID   string
	Name string
	Args string // a JSON object
}

// Result answers the call in the same place.
type Result struct {
	Text  string // never blank
	Error bool
}

// History converts a prompt. Results are found by label and, failing that, by position; a call without one gets a
// text that says so, and a result without a call is told as the user's.
func History(msgs []schema.Message, names *Names, rule IDRule) []Entry {
	h := history{names: names, rule: rule, used: map[string]bool{}}
	var out []Entry
	for i := 0; i < len(msgs); i++ {
		m := msgs[i]
		e := Entry{Role: m.Role, Text: schema.CleanText(m.Text), Items: m.Items}
		switch {
		case m.Role == schema.RoleTool:
			e = Entry{Role: schema.RoleUser, Text: fmt.Sprintf("Result of %s: %s", schema.CleanText(m.Name), outputText(m.Text))}
		case m.Role == schema.RoleAssistant && len(m.Calls) > 0:
			end := i + 1
			for end < len(msgs) && msgs[end].Role == schema.RoleTool && end-i <= len(m.Calls) {
				end++
			}
			e.Results = results(m.Calls, msgs[i+1:end])
			e.Calls = h.calls(m.Calls)
			i = end - 1
		}
		out = append(out, e)
	}
	return out
}

type history struct {
	names *Names
	rule  IDRule
	used  map[string]bool
}

func (h *history) calls(in []schema.MessageCall) []Call {
	out := make([]Call, len(in))
	for i, c := range in {
		out[i] = Call{ID: h.id(c.Label), Name: h.names.Encode(c.Name), Args: SafeArgs(c.Args)}
	}
	return out
}

// id returns the provider's id of the next call with this label. Labels repeat between turns; some providers refuse
// a history in which an id does.
func (h *history) id(label string) string {
	id := h.rule.Fit(label)
	for n := 2; h.used[id]; n++ {
		id = h.rule.Fit(fmt.Sprintf("%s %d", label, n)) // a space: Fit always takes a digest of it
	}
	h.used[id] = true
	return id
}

func results(calls []schema.MessageCall, msgs []schema.Message) []Result {
	out := make([]Result, len(calls))
	found := make([]bool, len(calls))
	var rest []schema.Message
	put := func(i int, m schema.Message) {
		out[i] = Result{Text: outputText(m.Text), Error: m.Error}
		found[i] = true
	}
	for _, m := range msgs {
		if i := slot(calls, found, m.Label); i >= 0 {
			put(i, m)
			continue
		}
		rest = append(rest, m)
	}
	for i := range calls {
		switch {
		case found[i]:
		case len(rest) > 0:
			put(i, rest[0])
			rest = rest[1:]
		default:
			out[i] = Result{Text: noResult, Error: true}
		}
	}
	return out
}

func slot(calls []schema.MessageCall, found []bool, label string) int {
	for i, c := range calls {
		if c.Label == label && !found[i] {
			return i
		}
	}
	return -1
}

func outputText(s string) string {
	if strings.TrimSpace(s) == "" {
		return NoOutput
	}
	return schema.CleanText(s)
}

// SafeArgs returns arguments that every provider reads as a JSON object: {} for what is none, and U+FFFD for an
// escaped surrogate that has no other half.
func SafeArgs(args string) string {
	args = strings.TrimSpace(schema.CleanText(args))
	if !isObject([]byte(args)) {
		return "{}"
	}
	return fixEscapes(args)
}

func fixEscapes(s string) string {
	if !strings.Contains(s, `\ud`) && !strings.Contains(s, `\uD`) {
		return s
	}
	b := []byte(s)
	for i := 0; i+1 < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		i++
		if b[i] != 'u' {
			continue
		}
		r, ok := hex4(b[i+1:])
		switch _, pair := lowAfter(b[min(i+5, len(b)):], r); {
		case pair:
			i += 10
		case ok && r >= 0xd800 && r < 0xe000:
			copy(b[i+1:], "fffd")
			i += 4
		}
	}
	return string(b)
}
