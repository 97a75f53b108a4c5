package agentfile

import (
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/jetcrew/jetcrew/schema"
)

// maxID bounds an agent's id: it becomes part of names elsewhere.
const maxID = 64

var validID = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// agent reads the whole file.
func (r *reader) agent(root ast.Node) schema.AgentSpec {
	root = r.resolve(root)
	fields := r.object(root, shapeFile())
	spec := schema.AgentSpec{
		Name:         strings.TrimSpace(r.text(fields[fieldName])),
		Instructions: r.instructions(fields[fieldInstructions]),
	}
	if _, ok := root.(ast.MapNode); !ok {
		return spec
	}
	r.version(root, fields[fieldVersion])
	spec.ID = r.id(root, fields[fieldID])
	spec.Model, spec.Parallel = r.model(root, fields[fieldModel])
	spec.Limits = r.limits(fields[fieldLimits], spec.Model.Price)
	spec.Compaction = r.session(fields[fieldSession])
	r.govern(fields, &spec)
	return spec
}

func (r *reader) version(root ast.Node, f field) {
	if f.null() {
		r.failAt(top(root, f), CodeVersionRequired, "version is missing; it is %s", Version)
		return
	}
	if v := r.text(f); v != Version && v != "" {
		r.fail(f.value, CodeVersionUnsupported, "version %q is not supported; this program reads %s", short(v), Version)
	}
}

func (r *reader) id(root ast.Node, f field) string {
	if f.null() {
		r.failAt(top(root, f), CodeIDRequired, "id is missing; it names the agent, such as code-reviewer")
		return ""
	}
	id := r.text(f)
	if _, isText := f.value.(*ast.StringNode); isText && (len(id) > maxID || !validID.MatchString(id)) {
		r.fail(f.value, CodeIDInvalid, "id %q: want 1 to %d of A-Z, a-z, 0-9, '.', '_' and '-'", short(id), maxID)
	}
	return id
}

// limits reads the limits of an exchange. price is that of the model.
func (r *reader) limits(f field, price schema.Price) schema.Limits {
	limits := schema.DefaultLimits()
	if f.null() {
		return limits
	}
	fields := r.object(f.value, shapeLimits())
	if n, ok := r.limit(fields[fieldMaxSteps]); ok {
		limits.MaxSteps = int(n)
	}
	if n, ok := r.limit(fields[fieldMaxTokens]); ok {
		limits.MaxTokens = n
	}
	if ms, ok := r.wallClock(fields[fieldWallClock]); ok {
		limits.WallClockMS = ms
	}
	limits.MaxCost, _ = r.amount(fields[fieldMaxCost])
	if limits.MaxCost > 0 && price == (schema.Price{}) {
		r.fail(fields[fieldMaxCost].value, CodePriceRequired, "%s: what the model costs is not known; set price of model, in fields", fields[fieldMaxCost].name)
	}
	return limits
}

// limit is a number that is not negative.
func (r *reader) limit(f field) (int64, bool) {
	n, ok := r.number(f)
	if ok && n < 0 {
		r.fail(f.value, CodeNumberRange, "%s: %d is negative; 0 is no limit", f.name, n)
		return 0, false
	}
	return n, ok
}

// amount is a number, perhaps with a fraction, that is not negative.
func (r *reader) amount(f field) (float64, bool) {
	if f.null() {
		return 0, false
	}
	var x float64
	switch n := f.value.(type) {
	case *ast.FloatNode:
		x = n.Value
	case *ast.IntegerNode:
		x = whole(n)
	default:
		r.fail(f.value, CodeTypeNumber, "%s: want a number, got %s", f.name, describe(f.value))
		return 0, false
	}
	if !(x >= 0 && x <= math.MaxFloat64) {
		r.fail(f.value, CodeNumberRange, "%s: %s is negative or too large", f.name, short(f.value.GetToken().Value))
		return 0, false
	}
	return x, true
}

func whole(n *ast.IntegerNode) float64 {
	switch v := n.Value.(type) {
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	}
	return math.NaN()
}

// wallClock is a time that may be 0 for no limit, in milliseconds.
func (r *reader) wallClock(f field) (int64, bool) {
	if inMillis(f.name) || f.null() {
		return r.limit(f)
	}
	d, ok := r.duration(f, fieldWallClock)
	if ok && d < 0 {
		r.fail(f.value, CodeNumberRange, "%s: %s is negative; 0s is no limit", f.name, d)
	}
	return d.Milliseconds(), ok && d >= 0
}

// bound is a time above 0, in milliseconds; 0: the field is absent. millis is the field that takes them as a number.
func (r *reader) bound(f field, millis string) int64 {
	if f.null() {
		return 0
	}
	var ms int64
	var ok bool
	if inMillis(f.name) {
		ms, ok = r.number(f)
	} else {
		var d time.Duration
		d, ok = r.duration(f, millis)
		ms = d.Milliseconds()
	}
	if ok && ms <= 0 {
		r.fail(f.value, CodeNumberRange, "%s: want more than 0; leave it out for none", f.name)
	}
	return ms
}

// duration is a text such as 5m.
func (r *reader) duration(f field, millis string) (time.Duration, bool) {
	s, ok := f.value.(*ast.StringNode)
	if !ok {
		r.fail(f.value, CodeTypeDuration, "%s: want a duration such as 5m, got %s; milliseconds go into %s", f.name, kind(f.value), millis)
		return 0, false
	}
	d, err := time.ParseDuration(s.Value)
	switch {
	case err != nil:
		r.fail(f.value, CodeTypeDuration, "%s: %q is not a duration such as 90s, 5m or 1h", f.name, short(s.Value))
	case d > 0 && d < time.Millisecond:
		r.fail(f.value, CodeNumberRange, "%s: %s is less than a millisecond", f.name, s.Value)
	default:
		return d, true
	}
	return 0, false
}
