package agentfile

import (
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/jetcrew/jetcrew/schema"
)

// The fields of a file. Settings have a camelCase and a snake_case spelling; the first is the one that is shown.
const (
	fieldVersion      = "version"
	fieldID           = "id"
	fieldName         = "name"
	fieldModel        = "model"
	fieldProvider     = "provider"
	fieldOptions      = "options"
	fieldInstructions = "instructions"
	fieldTools        = "tools"
	fieldLimits       = "limits"
	fieldSession      = "session"
)

var (
	maxStepsFields  = []string{"maxSteps", "max_steps"}
	maxTokensFields = []string{"maxTokens", "max_tokens"}
	wallClockFields = []string{"wallClockMillis", "wall_clock_millis", "wallClock", "wall_clock"}
)

// maxID bounds an agent's id: it becomes part of names elsewhere.
const maxID = 64

var validID = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// agent reads the whole file.
func (r *reader) agent(root ast.Node) schema.AgentSpec {
	root = r.resolve(root)
	fields := r.object(root, "the file", fieldVersion, fieldID, fieldName, fieldModel, fieldInstructions, fieldTools, fieldLimits, fieldSession)
	spec := schema.AgentSpec{
		Name:         strings.TrimSpace(r.text(fields[fieldName])),
		Instructions: r.text(fields[fieldInstructions]),
	}
	if _, ok := root.(ast.MapNode); !ok {
		return spec
	}
	r.version(root, fields[fieldVersion])
	spec.ID = r.id(root, fields[fieldID])
	spec.Model, spec.Parallel = r.model(root, fields[fieldModel])
	spec.Tools = r.tools(fields[fieldTools])
	spec.Limits = r.limits(fields[fieldLimits])
	spec.Compaction = r.session(fields[fieldSession])
	return spec
}

func (r *reader) version(root ast.Node, f field) {
	if f.null() {
		r.failAt(top(root, f), "version is missing; it is %s", Version)
		return
	}
	if v := r.text(f); v != Version && v != "" {
		r.fail(f.value, "version %q is not supported; this program reads %s", short(v), Version)
	}
}

func (r *reader) id(root ast.Node, f field) string {
	if f.null() {
		r.failAt(top(root, f), "id is missing; it names the agent, such as code-reviewer")
		return ""
	}
	id := r.text(f)
	if _, isText := f.value.(*ast.StringNode); isText && (len(id) > maxID || !validID.MatchString(id)) {
		r.fail(f.value, "id %q: want 1 to %d of A-Z, a-z, 0-9, '.', '_' and '-'", short(id), maxID)
	}
	return id
}

// tools reads the list of tools: names, globs and queue/name.
func (r *reader) tools(f field) []string {
	if f.null() {
		return nil
	}
	list, ok := f.value.(*ast.SequenceNode)
	if !ok {
		r.fail(f.value, "tools: want a list of names, got %s", describe(f.value))
		return nil
	}
	var tools []string
	for _, n := range list.Values {
		n = r.resolve(n)
		name, ok := n.(*ast.StringNode)
		switch {
		case !ok:
			r.fail(n, "tools: want a name, got %s%s", kind(n), quoteHint(n))
			continue
		case strings.TrimSpace(name.Value) == "":
			r.fail(n, "tools: a name is empty")
			continue
		}
		tool := strings.TrimSpace(name.Value)
		if _, err := path.Match(tool, ""); err != nil {
			r.fail(n, "tools: %q is not a valid pattern", short(tool))
		} else if contains(tools, tool) {
			r.fail(n, "tools: %q stands in the list twice", short(tool))
		}
		tools = append(tools, tool)
	}
	return tools
}

// limits reads the limits of an exchange.
func (r *reader) limits(f field) schema.Limits {
	limits := schema.DefaultLimits()
	if f.null() {
		return limits
	}
	allowed := append(append(append([]string(nil), maxStepsFields...), wallClockFields...), maxTokensFields...)
	fields := r.object(f.value, fieldLimits, allowed...)
	if n, ok := r.limit(r.pick(fields, maxStepsFields...)); ok {
		limits.MaxSteps = int(n)
	}
	if n, ok := r.limit(r.pick(fields, maxTokensFields...)); ok {
		limits.MaxTokens = n
	}
	if ms, ok := r.wallClock(r.pick(fields, wallClockFields...)); ok {
		limits.WallClockMS = ms
	}
	return limits
}

// limit is a number that is not negative.
func (r *reader) limit(f field) (int64, bool) {
	n, ok := r.number(f)
	if ok && n < 0 {
		r.fail(f.value, "%s: %d is negative; 0 is no limit", f.name, n)
		return 0, false
	}
	return n, ok
}

// wallClock is a number of milliseconds or, in the fields that say so by their name, a duration.
func (r *reader) wallClock(f field) (int64, bool) {
	if strings.HasSuffix(strings.ToLower(f.name), "millis") || f.null() {
		return r.limit(f)
	}
	s, ok := f.value.(*ast.StringNode)
	if !ok {
		r.fail(f.value, "%s: want a duration such as 5m, got %s; milliseconds go into %s", f.name, kind(f.value), wallClockFields[0])
		return 0, false
	}
	d, err := time.ParseDuration(s.Value)
	switch {
	case err != nil:
		r.fail(f.value, "%s: %q is not a duration such as 90s, 5m or 1h", f.name, short(s.Value))
	case d < 0:
		r.fail(f.value, "%s: %s is negative; 0s is no limit", f.name, s.Value)
	case d > 0 && d < time.Millisecond:
		r.fail(f.value, "%s: %s is less than a millisecond", f.name, s.Value)
	default:
		return d.Milliseconds(), true
	}
	return 0, false
}
