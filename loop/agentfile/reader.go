package agentfile

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// reader walks a file and collects problems.
type reader struct {
	source
	named    map[string]ast.Node // by anchor
	looks    int
	problems []Problem
}

func newReader(src source) *reader {
	return &reader{source: src, named: map[string]ast.Node{}}
}

func (r *reader) fail(at ast.Node, format string, args ...any) {
	r.failAt(at.GetToken(), format, args...)
}

func (r *reader) failAt(tok *token.Token, format string, args ...any) {
	line, column := 1, 1
	if tok != nil && tok.Position != nil {
		line, column = tok.Position.Line, tok.Position.Column
	}
	r.problems = append(r.problems, r.problem(line, column, format, args...))
}

// field is one field of a mapping. Its value has no anchor or alias around it.
type field struct {
	name  string
	key   *token.Token
	value ast.Node
}

// null tells whether the field is absent or has no value; both mean the default.
func (f field) null() bool {
	_, ok := f.value.(*ast.NullNode)
	return ok || f.value == nil
}

// object returns the fields of n by name, where n is what the file calls name. Fields outside of allowed are refused,
// unless allowed is empty.
func (r *reader) object(n ast.Node, name string, allowed ...string) map[string]field {
	fields := map[string]field{}
	for _, f := range r.fields(n, name) {
		if len(allowed) > 0 && !contains(allowed, f.name) {
			r.failAt(f.key, "unknown field %q%s", short(f.name), suggest(f.name, allowed))
			continue
		}
		fields[f.name] = f
	}
	return fields
}

// fields returns the fields of a mapping in their order, each name once, without those that hold a secret.
func (r *reader) fields(n ast.Node, name string) []field {
	m, ok := n.(ast.MapNode)
	if !ok {
		r.fail(n, "%s: want fields, got %s", name, kind(n))
		return nil
	}
	var list []field
	seen := map[string]int{}
	for it := m.MapRange(); it.Next(); {
		f, ok := r.field(it.Key(), it.Value())
		if !ok {
			continue
		}
		if line, twice := seen[f.name]; twice {
			r.failAt(f.key, "field %q stands here a second time; the first is in line %d", short(f.name), line)
			continue
		}
		seen[f.name] = f.key.Position.Line
		if secretName(f.name) {
			r.failAt(f.key, "field %q: secrets do not belong into an agent file; set %s in the environment or in .env", short(f.name), keyVariables)
			continue
		}
		list = append(list, f)
	}
	return list
}

func (r *reader) field(key ast.MapKeyNode, value ast.Node) (field, bool) {
	tok := key.GetToken()
	if key.IsMergeKey() {
		r.failAt(tok, "merge keys are not supported: write the fields out")
		return field{}, false
	}
	scalar, ok := r.resolve(key).(ast.ScalarNode)
	if !ok {
		r.failAt(tok, "a field's name is plain text")
		return field{}, false
	}
	f := field{name: scalar.GetToken().Value, key: tok, value: r.resolve(value)}
	if s, ok := f.value.(*ast.StringNode); ok && secretValue.MatchString(s.Value) {
		r.failAt(tok, "field %q holds what looks like a key; set %s in the environment or in .env", short(f.name), keyVariables)
		return field{}, false
	}
	return f, true
}

// pick returns the field of one of two spellings. Both at once is a problem.
func (r *reader) pick(fields map[string]field, names ...string) field {
	var found field
	for _, name := range names {
		f, ok := fields[name]
		switch {
		case ok && found.key != nil:
			r.failAt(f.key, "%s and %s are the same setting: keep one", found.name, f.name)
		case ok:
			found = f
		}
	}
	return found
}

// text returns a field's text; absent or null is "".
func (r *reader) text(f field) string {
	if f.null() {
		return ""
	}
	s, ok := f.value.(*ast.StringNode)
	if !ok {
		r.fail(f.value, "%s: want text, got %s%s", f.name, kind(f.value), quoteHint(f.value))
		return ""
	}
	return s.Value
}

// number returns a field's whole number; ok is false when it is absent, null or something else.
func (r *reader) number(f field) (n int64, ok bool) {
	if f.null() {
		return 0, false
	}
	i, isInt := f.value.(*ast.IntegerNode)
	if !isInt {
		r.fail(f.value, "%s: want a whole number, got %s", f.name, describe(f.value))
		return 0, false
	}
	switch v := i.Value.(type) {
	case int64:
		return v, true
	case uint64:
		if v <= 1<<62 {
			return int64(v), true
		}
	}
	r.fail(f.value, "%s: the number is too large", f.name)
	return 0, false
}

// flag returns a field's true or false; absent or null is false.
func (r *reader) flag(f field) bool {
	if f.null() {
		return false
	}
	b, ok := f.value.(*ast.BoolNode)
	if !ok {
		r.fail(f.value, "%s: want true or false, got %s", f.name, describe(f.value))
		return false
	}
	return b.Value
}

// describe is kind with the value, where it is short.
func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.StringNode, *ast.FloatNode:
		return kind(n) + " (" + short(n.GetToken().Value) + ")"
	}
	return kind(n)
}

func quoteHint(n ast.Node) string {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return "; put it in quotes"
	}
	return ""
}

// short cuts what a message repeats from the file.
func short(s string) string {
	const most = 60
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + mask
	}
	return strings.ReplaceAll(s, "\n", " ")
}
