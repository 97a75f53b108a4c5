package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// Problem is something in the facts of a run that does not fit together.
type Problem struct {
	Fact string `json:"fact"` // key of the fact
	Seq  uint64 `json:"seq"`  // its sequence in the stream of runs; 0: it is absent
	Text string `json:"text"` // what is wrong with it
}

func (p Problem) String() string {
	if p.Seq == 0 {
		return fmt.Sprintf("%s: %s", p.Fact, p.Text)
	}
	return fmt.Sprintf("%s (%d): %s", p.Fact, p.Seq, p.Text)
}

// Check computes anew what the facts say of each other, once all of them are applied, and returns what does not fit, in
// stored order: digests of questions and approvals that are not those of the call, calls that ran without an approval
// or against the decision, more than one result, facts missing from a row or written after close.
func (t *Trail) Check() []Problem {
	c := checker{Trail: t}
	c.readable()
	c.rows()
	c.questions()
	c.answers()
	for at, call := range t.calls {
		c.ofCall(at, call)
	}
	c.views()
	c.end()
	slices.SortFunc(c.found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Fact, b.Fact), cmp.Compare(a.Text, b.Text))
	})
	return slices.Compact(c.found)
}

// checker collects what does not fit.
type checker struct {
	*Trail
	found []Problem
}

func (c *checker) add(key schema.Key, format string, args ...any) {
	c.found = append(c.found, Problem{key.String(), c.known[key], fmt.Sprintf(format, args...)})
}

func (c *checker) readable() {
	for _, key := range c.dead {
		c.add(key, "its payload cannot be read")
	}
}

// rows looks for facts that are missing: numbers count from 1 without a gap, up to what other facts name.
func (c *checker) rows() {
	if c.known[schema.OpenKey()] == 0 {
		c.add(schema.OpenKey(), "it is missing")
	}
	numbers := map[schema.Kind][]int{}
	for key := range c.known {
		numbers[key.Kind] = append(numbers[key.Kind], key.N)
	}
	for kind, key := range map[schema.Kind]func(int) schema.Key{
		schema.KindCtl: schema.CtlKey, schema.KindSay: schema.SayKey, schema.KindTurn: schema.TurnKey, schema.KindAnswer: schema.AnswerKey,
	} {
		there := numbers[kind]
		slices.Sort(there)
		next := 1
		for _, n := range there { // a gap is one problem, however wide: a stranger may have chosen the number behind it
			switch {
			case n == next+1:
				c.add(key(next), "it is missing, though %s is there", key(n))
			case n > next:
				c.add(key(next), "it is missing, and what follows it up to %s, though %s is there", key(n-1), key(n))
			}
			next = n + 1
		}
		if last := c.named[kind]; last.n >= next {
			c.add(key(next), "it is missing, though %s names %s", last.by, key(last.n))
		}
	}
	if c.close != nil && c.open != nil && c.open.Kind != schema.RunCall && c.close.State != stopped && len(numbers[schema.KindAnswer]) == 0 {
		c.add(schema.AnswerKey(1), "it is missing, though the run is closed as %q", name(c.close.State))
	}
}

// stopped is the state of a run that was closed without an answer.
const stopped = "stopped"

// questions compares what people are asked with the calls that the turns hold.
func (c *checker) questions() {
	for key, a := range c.asks {
		call := c.calls[place{key.N, key.I}]
		if call == nil || call.seq == 0 {
			c.add(key, "it asks about a call that no turn holds")
			continue
		}
		want := call.Ask
		if a.Edited != "" {
			want.Args = digest(string(a.Edited))
			if !c.edited(key, a.Edited) {
				c.add(key, "no verdict before it wants these arguments")
			}
		}
		if key.K > 1 { // the tool had changed since the question before
			want.Schema = a.Schema
		}
		for _, d := range []struct{ what, have, want string }{
			{"tool", a.Tool, want.Tool},
			{"target", a.Target, want.Target},
			{"source", a.Source, want.Source},
			{"queue", a.Queue, want.Queue},
			{"digest of the arguments", a.Args, want.Args},
			{"digest of the bound values", a.Bound, want.Bound},
			{"digest of the schema", a.Schema, want.Schema},
		} {
			if d.have != d.want {
				c.add(key, "the %s is %q, that of the call is %q", d.what, name(d.have), name(d.want))
			}
		}
		if a.seq < call.seq {
			c.add(key, "it was asked before the turn was there")
		}
	}
}

// edited tells whether a verdict before ask key wants args.
func (c *checker) edited(key schema.Key, args schema.JSONText) bool {
	for of, v := range c.verdicts {
		if v.Args == "" || of.N != key.N || of.I != key.I || of.K >= key.K {
			continue
		}
		if text, _, err := schema.Canonical(string(v.Args)); err == nil && text == args {
			return true
		}
	}
	return false
}

// answers compares verdicts with what was asked.
func (c *checker) answers() {
	for key, v := range c.verdicts {
		askKey := schema.AskKey(key.N, key.I, key.K)
		a, ok := c.asks[askKey]
		switch {
		case !ok || a.seq > v.seq:
			c.add(key, "nobody had asked")
		case v.Decision != schema.VerdictApprove:
		case v.Digest != a.Digest(c.run, askKey):
			c.add(key, "it approves another call than the one asked about")
		case v.AtMS >= a.ExpiresMS:
			c.add(key, "it approves after the question had expired")
		case v.stored.UnixMilli() >= a.ExpiresMS+onItsWay.Milliseconds():
			c.add(key, "it says that it approves in time, and was written after the question had expired")
		}
	}
}

// onItsWay is how long a verdict that was given in time may take to be stored.
const onItsWay = 2 * time.Minute

// ofCall checks what happened to one call.
func (c *checker) ofCall(at place, call *call) {
	if c.open != nil && c.open.Kind == schema.RunCall { // its call is in no turn
		if call.seq > 0 {
			c.add(schema.TurnKey(at.turn), "a call outside any run has no turns")
		}
		if len(call.runs) > 0 {
			c.oneResult(at, call, call.runs[0].key.Queue)
		}
		return
	}
	if call.seq == 0 {
		for _, s := range call.runs {
			c.add(s.key, "no turn holds call %d.%d", at.turn, at.index)
		}
		return
	}
	c.oneResult(at, call, call.Queue)
	for _, s := range call.runs {
		if s.seq < call.seq {
			c.add(s.key, "it is older than the turn that decided about the call")
		}
		if s.key.Queue != "" && s.key.Queue != call.Queue {
			c.add(s.key, "the turn gives the call to the queue %q", name(call.Queue))
		}
		if why := c.forbidden(at, call, s); why != "" && (s.ran || s.success || s.key.Kind == schema.KindSent) {
			c.add(s.key, "%s", why)
		}
	}
}

// views looks for those that were there before the call which they are about.
func (c *checker) views() {
	for key, seq := range c.known {
		if key.Kind != schema.KindView {
			continue
		}
		switch call := c.calls[place{key.N, key.I}]; {
		case call == nil || call.seq == 0:
			c.add(key, "no turn holds call %d.%d", key.N, key.I)
		case seq < call.seq:
			c.add(key, "it is older than the turn that decided about the call")
		}
	}
}

// oneResult looks for the one result of a call.
func (c *checker) oneResult(at place, call *call, queue string) {
	var results []schema.Key
	for _, s := range call.runs {
		if s.key.Kind == schema.KindResult {
			results = append(results, s.key)
		}
	}
	switch {
	case len(results) > 1:
		c.add(results[len(results)-1], "it is one of %d results of call %d.%d", len(results), at.turn, at.index)
	case len(results) == 0 && c.close != nil:
		c.add(schema.ResultKey(at.turn, at.index, queue), "it is missing, though the run is closed")
	}
}

// forbidden says why a call was not to run when step s came, "" when it was.
func (c *checker) forbidden(at place, call *call, s step) string {
	switch call.decision.Action {
	case schema.ActionAllow:
		return ""
	case schema.ActionAsk:
	default:
		return fmt.Sprintf("the decision about the call was %q", name(string(call.decision.Action)))
	}
	last := 0
	for key, a := range c.asks {
		if key.N == at.turn && key.I == at.index && a.seq < s.seq {
			last = max(last, key.K)
		}
	}
	if last == 0 {
		return "the call ran and nobody had been asked"
	}
	key := schema.AskKey(at.turn, at.index, last)
	a := c.asks[key]
	v, ok := c.verdicts[schema.VerdictKey(at.turn, at.index, last)]
	if !ok || v.seq > s.seq {
		return "the call ran before anybody had approved it"
	}
	if _, ok := v.Approves(c.run, key, &a.Ask); !ok {
		return "the call ran though the verdict does not approve it"
	}
	return ""
}

// end looks for facts after close, and compares what close counts. Slots of control, verdicts, deliveries given back
// and publications noted may come late: they change nothing any more.
func (c *checker) end() {
	if c.close == nil {
		return
	}
	for key, seq := range c.known {
		switch key.Kind {
		case schema.KindCtl, schema.KindVerdict, schema.KindBack, schema.KindSent:
			continue
		}
		if seq > c.known[schema.CloseKey()] {
			c.add(key, "it was written after close")
		}
	}
	turns, calls := 0, 0
	for key := range maps.Keys(c.known) {
		if key.Kind == schema.KindTurn {
			turns++
		}
	}
	for _, call := range c.calls {
		if call.seq > 0 {
			calls++
		}
	}
	if c.open != nil && c.open.Kind != schema.RunCall && (c.close.Turns != turns || c.close.Calls != calls) {
		c.add(schema.CloseKey(), "it counts %d turns and %d calls, there are %d and %d", c.close.Turns, c.close.Calls, turns, calls)
	}
}
