package memory

import (
	"maps"
	"slices"
	"strings"

	"github.com/jetcrew/jetcrew/schema"
)

// noName stands in a message for a blank tool name, which providers refuse in a history.
const noName = "tool"

// Messages returns the next prompt: the instructions as the system message, then the conversation that the run goes on
// with, or what stands in for everything that the newest fold has compacted, then says where the model saw them, and each turn followed by one tool message per call, in
// call order. It ends with the last complete round: a turn with an open call, and what comes after it, is left out.
func (r *Run) Messages() []schema.Message {
	msgs, _ := r.Prompt()
	return msgs
}

// Prompt returns Messages, and the number of the last say among them. The rounds that were complete the last time are
// not put together again.
func (r *Run) Prompt() (msgs []schema.Message, said int) { return r.PromptUpTo(r.Says()) }

// PromptUpTo is Prompt without the messages behind number k that no turn has seen.
func (r *Run) PromptUpTo(k int) (msgs []schema.Message, said int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.newest(); r.done.run == nil || r.done.fold != f {
		r.done = r.begin(f)
	}
	whole := r.done.extend(r.turns)
	b := r.done
	b.msgs = slices.Clip(b.msgs) // what follows is not part of the rounds
	b.seen = maps.Clone(b.seen)
	if whole {
		b.sayUpTo(k)
	}
	return b.msgs, b.said
}

// History returns what Messages would without any fold: everything that was said and done.
func (r *Run) History() []schema.Message {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.build(nil).msgs
}

// prompt is a prompt being put together; its run's lock is held.
type prompt struct {
	run   *Run
	fold  *schema.Fold // that it begins with; nil: none
	msgs  []schema.Message
	turns int // rounds that are in, or compacted
	said  int // the last say that is in, or compacted
	seen  sources

	handed bool // to another run
}

// begin starts a prompt that honours f.
func (r *Run) begin(f *schema.Fold) prompt {
	b := prompt{run: r, fold: f}
	b.instructions()
	if f != nil {
		b.folded()
	} else {
		b.msgs = append(b.msgs, r.before()...)
	}
	return b
}

// build puts a whole prompt together that honours f.
func (r *Run) build(f *schema.Fold) prompt {
	b := r.begin(f)
	if b.extend(r.turns) {
		b.sayUpTo(r.says)
	}
	return b
}

// extend adds the rounds up to turn last that are complete now; false: a turn is left whose round is not. A turn that
// saw a say which is not known yet waits for it, since the say stands before the round.
func (b *prompt) extend(last int) bool {
	for n := b.turns + 1; n <= last; n++ {
		t := lookup[schema.Turn](b.run, schema.TurnKey(n))
		if t.Say > b.run.says {
			return false
		}
		b.sayUpTo(t.Say)
		if !b.round(n, t) {
			return false
		}
		b.turns = n
	}
	return true
}

func (b *prompt) instructions() {
	o := lookup[schema.Open](b.run, schema.OpenKey())
	if o != nil && o.Agent != nil && strings.TrimSpace(o.Agent.Instructions) != "" {
		b.msgs = append(b.msgs, schema.Message{Role: schema.RoleSystem, Text: o.Agent.Instructions})
	}
}

func (b *prompt) sayUpTo(k int) {
	for b.said < min(k, b.run.says) {
		b.said++
		if s := lookup[schema.Say](b.run, schema.SayKey(b.said)); b.seen.fresh(s) && !b.run.blocked(b.said) && !b.drops(s) {
			b.msgs = append(b.msgs, schema.Message{Role: s.Role, Text: s.Text})
		}
	}
}

// blocked tells whether message k was refused by a hook: no model reads it. It wants r.mu held.
func (r *Run) blocked(k int) bool {
	before := 0
	for n := 1; n <= r.answers; n++ {
		a := lookup[schema.Answer](r, schema.AnswerKey(n))
		if k > before && k <= a.Say {
			return a.Reason == schema.ReasonBlocked
		}
		before = max(before, a.Say)
	}
	return false
}

// round adds turn n with its results; false: a call of it is open, nothing was added.
func (b *prompt) round(n int, t *schema.Turn) bool {
	m := schema.Message{Role: schema.RoleAssistant, Text: t.Text, Items: t.Items}
	results := make([]schema.Message, 0, len(t.Calls))
	for i, c := range t.Calls {
		r := b.run.result(n, i, t)
		if r == nil {
			return false
		}
		name := c.Tool
		if strings.TrimSpace(name) == "" {
			name = noName
		}
		m.Calls = append(m.Calls, schema.MessageCall{Label: c.Label, Name: name, Args: string(c.Args)})
		text := b.text(n, i, c, r)
		if b.handed {
			text = schema.ForgetOmitted(text)
		}
		results = append(results, schema.Message{Role: schema.RoleTool, Text: text, Label: c.Label, Name: name, Error: !r.OK})
	}
	b.msgs = append(append(b.msgs, m), results...)
	return true
}

// text is what the model reads of a result: the view if there is one; and a failure always says something (A13).
func (b *prompt) text(n, i int, c schema.TurnCall, r *schema.Result) string {
	if v := lookup[schema.View](b.run, schema.ViewKey(n, i)); v != nil {
		return v.Text
	}
	if r.OK || strings.TrimSpace(r.Output) != "" {
		return r.Output
	}
	e := r.Error
	if e == nil {
		e = &schema.Error{Type: schema.ToolFailed}
	}
	return schema.ToolError(e, c.Tool, c.Label)
}

// Text returns what the model reads of call i of turn n; ok is false while the call is open.
func (r *Run) Text(n, i int) (text string, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	t := lookup[schema.Turn](r, schema.TurnKey(n))
	if t == nil || i < 0 || i >= len(t.Calls) {
		return "", false
	}
	res := r.result(n, i, t)
	if res == nil {
		return "", false
	}
	b := prompt{run: r}
	return b.text(n, i, t.Calls[i], res), true
}

// sources are the sources of the says so far: a writer that is not sure whether its say was stored says it again
// under the same source, and only the first counts.
type sources map[string]bool

// fresh tells whether s is to be read, and notes its source.
func (seen *sources) fresh(s *schema.Say) bool {
	if s.Role == "" || s.Source != "" && (*seen)[s.Source] {
		return false
	}
	if *seen == nil {
		*seen = make(sources)
	}
	if s.Source != "" {
		(*seen)[s.Source] = true
	}
	return true
}
