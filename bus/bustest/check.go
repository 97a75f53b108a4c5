package bustest

import (
	"fmt"

	"github.com/jetcrew/jetcrew/schema"
)

// Check returns what is wrong with the facts of one run that has ended: numbers with gaps, a call without its one
// result or with one under another queue, a run-once call that a worker settled without having begun, facts of an
// owner that was not there, anything the owner wrote after close.
func Check(facts []schema.Fact) []error {
	c := checker{facts: map[schema.Key]schema.Fact{}, last: map[schema.Kind]int{}}
	for _, f := range facts {
		c.facts[f.Key] = f
		c.last[f.Key.Kind] = max(c.last[f.Key.Kind], f.Key.N)
	}
	c.begin(facts)
	c.numbers()
	for n := 1; n <= c.last[schema.KindTurn]; n++ {
		c.turn(n)
	}
	c.end()
	return c.errs
}

type checker struct {
	facts map[schema.Key]schema.Fact
	last  map[schema.Kind]int
	errs  []error
}

func (c *checker) errorf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// read decodes a fact; false: it is missing or unreadable.
func (c *checker) read(key schema.Key, into any) bool {
	f, ok := c.facts[key]
	if !ok {
		c.errorf("%s is missing", key)
		return false
	}
	if err := schema.Decode(f.Data, into); err != nil {
		c.errorf("%s: %w", key, err)
		return false
	}
	return true
}

// begin checks that open is the first fact, behind nothing but the stop of a run that waited to be opened.
func (c *checker) begin(facts []schema.Fact) {
	for _, f := range facts {
		var ctl schema.Ctl
		switch {
		case f.Key == schema.OpenKey():
			return
		case f.Key.Kind != schema.KindCtl, schema.Decode(f.Data, &ctl) != nil, ctl.Act != schema.CtlStop:
			c.errorf("%s was written before open", f.Key)
			return
		}
	}
	c.errorf("open is missing")
}

// numbers checks that what is counted has no gaps.
func (c *checker) numbers() {
	for _, key := range []func(int) schema.Key{schema.CtlKey, schema.SayKey, schema.TurnKey, schema.AnswerKey} {
		for n := 1; n <= c.last[key(1).Kind]; n++ {
			if _, ok := c.facts[key(n)]; !ok {
				c.errorf("%s is missing", key(n))
			}
		}
	}
}

func (c *checker) turn(n int) {
	var t schema.Turn
	if !c.read(schema.TurnKey(n), &t) {
		return
	}
	if own, ok := c.facts[schema.CtlKey(t.Own)]; !ok || own.Seq > c.facts[schema.TurnKey(n)].Seq {
		c.errorf("turn %d is of owner %d, which was not there", n, t.Own)
	}
	if next, ok := c.facts[schema.CtlKey(t.Own+1)]; ok && next.Seq < c.facts[schema.TurnKey(n)].Seq {
		c.errorf("turn %d was written after its owner was fenced", n)
	}
	for i := range t.Calls {
		c.call(n, i, &t.Calls[i])
	}
	for key := range c.facts {
		if key.Kind == schema.KindResult && key.N == n && (key.I >= len(t.Calls) || key.Queue != t.Calls[key.I].Queue) {
			c.errorf("%s belongs to no call", key)
		}
	}
}

func (c *checker) call(n, i int, call *schema.TurnCall) {
	var r schema.Result
	if !c.read(schema.ResultKey(n, i, call.Queue), &r) {
		return
	}
	if r.Turn != n || r.Index != i || r.OK == (r.Error != nil) {
		c.errorf("the result of %d.%d does not fit: %+v", n, i, r)
	}
	_, begun := c.facts[schema.BeginKey(n, i, call.Queue)]
	if r.OK && !call.Idempotent && !begun && call.Queue != schema.QueueAgents { // there the child's open says it
		c.errorf("run-once call %d.%d has a result without having begun", n, i)
	}
}

func (c *checker) end() {
	end, closed := c.facts[schema.CloseKey()]
	if !closed {
		c.errorf("the run is not closed")
		return
	}
	for key, f := range c.facts {
		switch key.Kind {
		case schema.KindTurn, schema.KindSay, schema.KindAnswer, schema.KindFold, schema.KindResult:
			if f.Seq > end.Seq {
				c.errorf("%s was written after close", key)
			}
		}
	}
}
