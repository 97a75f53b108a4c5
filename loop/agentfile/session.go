package agentfile

import (
	"math"

	"github.com/goccy/go-yaml/ast"

	"github.com/jetcrew/jetcrew/schema"
)

// defaultRatio is the trigger of a compaction whose file names none.
const defaultRatio = 0.8

// session reads what concerns the agent's memory; nil: it is never compacted.
func (r *reader) session(f field) *schema.Compaction {
	if f.null() {
		return nil
	}
	of := r.object(f.value, shapeSession())
	r.memory(of[fieldMemory])
	f = of[fieldCompaction]
	if f.null() {
		return nil
	}
	before := len(r.problems)
	fields := r.object(f.value, shapeCompaction())
	c := &schema.Compaction{Strategy: r.strategy(f, fields[fieldStrategy], before)}
	r.trigger(fields[fieldTrigger], c)
	if n, ok := r.atLeast(1, CodePreserve, fields[fieldPreserve]); ok {
		c.Preserve = n
	}
	c.Preserve = c.Keep()
	if c.MaxTurns > 0 && c.Preserve >= c.MaxTurns {
		r.fail(fields[fieldPreserve].value, CodePreserve, "preserve: want less than maxTurns, which is %d", c.MaxTurns)
	}
	return c
}

// memory reads what a file says about the memory itself. There is nothing to choose, so each value is the only one or an
// error: none is ignored.
func (r *reader) memory(f field) {
	if f.null() {
		return
	}
	fields := r.object(f.value, shapeMemory())
	r.flag(fields[fieldEnabled])
	if on, ok := fields[fieldEnabled].value.(*ast.BoolNode); ok && !on.Value {
		r.fail(on, CodeMemoryOff, "enabled: an agent's memory cannot be switched off: it is a fold of the facts of its run")
	}
	r.choice(fields[fieldScope], CodeMemoryScope, scopes)
	r.choice(fields[fieldStore], CodeMemoryStore, stores)
}

// strategy reads the one field of a compaction that has no default. Where before says that there are other problems
// with it, that it is missing may be one of them.
func (r *reader) strategy(compaction, f field, before int) string {
	s := r.text(f)
	switch {
	case f.null() && len(r.problems) == before:
		r.failAt(compaction.key, CodeStrategyRequired, "compaction: strategy is missing: %s or %s", schema.CompactWindow, schema.CompactSummary)
	case s != "" && !contains(strategies, s):
		r.fail(f.value, CodeStrategyUnknown, "unknown strategy %q%s", short(s), suggest(s, strategies))
	}
	return s
}

func (r *reader) trigger(f field, c *schema.Compaction) {
	if !f.null() {
		fields := r.object(f.value, shapeTrigger())
		c.ContextRatio = r.ratio(fields[fieldRatio])
		c.MaxTurns, _ = r.atLeast(2, CodeMaxTurns, fields[fieldMaxTurns])
	}
	if c.ContextRatio == 0 && c.MaxTurns == 0 {
		c.ContextRatio = defaultRatio
	}
}

// ratio is a number above 0 and up to 1; absent or null is 0.
func (r *reader) ratio(f field) float64 {
	if f.null() {
		return 0
	}
	x := math.NaN()
	switch n := f.value.(type) {
	case *ast.FloatNode:
		x = n.Value
	case *ast.IntegerNode:
		if n.GetToken().Value == "1" {
			x = 1
		}
	}
	if !(x > 0 && x <= 1) {
		r.fail(f.value, CodeContextRatio, "%s: want a number above 0 and up to 1, such as %v, got %s", f.name, defaultRatio, describe(f.value))
		return 0
	}
	return x
}

// atLeast is a whole number from least on.
func (r *reader) atLeast(least int, code Code, f field) (int, bool) {
	n, ok := r.number(f)
	if ok && (n < int64(least) || n > math.MaxInt32) {
		r.fail(f.value, code, "%s: want at least %d, got %d", f.name, least, n)
		return 0, false
	}
	return int(n), ok
}
