package agentfile

import (
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// reader walks a file and collects problems.
type reader struct {
	source
	root     ast.Node
	places   places
	named    map[string]ast.Node // by anchor
	looks    int
	toolsAt  []ast.Node // of each of AgentSpec.Tools
	settings []int      // of each of Governance.Tools its place in tools
	problems []Problem
	warnings []Problem
}

func newReader(src source, root ast.Node) *reader {
	return &reader{source: src, root: root, places: newPlaces(root), named: map[string]ast.Node{}}
}

func (r *reader) fail(at ast.Node, code Code, format string, args ...any) {
	r.problems = append(r.problems, r.atNode(at, code, format, args...))
}

func (r *reader) failAt(tok *token.Token, code Code, format string, args ...any) {
	r.problems = append(r.problems, r.at(tok, code, format, args...))
}

// failIn is fail with a place within a text: what is wrong begins so many bytes after its start.
func (r *reader) failIn(f field, offset int, code Code, format string, args ...any) {
	tok := f.value.GetToken()
	before := r.text(f)[:offset]
	last := before[strings.LastIndex(before, "\n")+1:]
	p := r.into(r.at(tok, code, format, args...), tok, 1+strings.Count(before, "\n"), 1+utf8.RuneCountInString(last))
	r.problems = append(r.problems, p)
}

// warn notes what the file can be used in spite of.
func (r *reader) warn(at ast.Node, code Code, format string, args ...any) {
	r.warnings = append(r.warnings, r.atNode(at, code, format, args...))
}

// atNode places a message at a value.
func (r *reader) atNode(n ast.Node, code Code, format string, args ...any) Problem {
	p := r.at(start(n), code, format, args...)
	if path, ok := r.places.paths[n.GetToken()]; ok {
		p.Path = redact(path) // start may be that of the first field in it
	}
	return p
}

// at places a message at a token.
func (r *reader) at(tok *token.Token, code Code, format string, args ...any) Problem {
	line, column, path := 1, 1, rootPath
	if p, ok := r.places.paths[tok]; ok {
		path = redact(p)
	}
	if block := r.places.blocks[tok]; block != nil {
		tok = block
	}
	if tok != nil && tok.Position != nil {
		line, column = tok.Position.Line, tok.Position.Column
	}
	p := r.problem(line, column, code, format, args...)
	p.Path = path
	return p
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

// object returns the fields of n, which has shape s, by the first name of their setting. Others are refused.
func (r *reader) object(n ast.Node, s *shape) map[string]field {
	known, others := s.sort(r, r.fields(n, s.name))
	for _, f := range others {
		r.failAt(f.key, CodeFieldUnknown, "unknown field %q%s", short(f.name), suggest(f.name, s.names()))
	}
	return known
}

// fields returns the fields of a mapping in their order, each name once, without those that hold a secret.
func (r *reader) fields(n ast.Node, name string) []field {
	m, ok := n.(ast.MapNode)
	if !ok {
		r.fail(n, CodeTypeMap, "%s: want fields, got %s", name, kind(n))
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
			r.failAt(f.key, CodeFieldDuplicate, "field %q stands here a second time; the first is in line %d", short(f.name), line)
			continue
		}
		seen[f.name] = f.key.Position.Line
		if secretName(f.name) {
			r.failAt(f.key, CodeFieldSecret, "field %q: secrets do not belong into an agent file; set %s in the environment or in .env", short(f.name), keyVariables)
			continue
		}
		list = append(list, f)
	}
	return list
}

func (r *reader) field(key ast.MapKeyNode, value ast.Node) (field, bool) {
	tok := key.GetToken()
	if key.IsMergeKey() {
		r.failAt(tok, CodeMergeKey, "merge keys are not supported: write the fields out")
		return field{}, false
	}
	scalar, ok := r.resolve(key).(ast.ScalarNode)
	if !ok {
		r.failAt(tok, CodeTypeKey, "a field's name is plain text")
		return field{}, false
	}
	f := field{name: scalar.GetToken().Value, key: tok, value: r.resolve(value)}
	if s, ok := f.value.(*ast.StringNode); ok && secretValue.MatchString(s.Value) {
		r.failAt(tok, CodeFieldSecret, "field %q holds what looks like a key; set %s in the environment or in .env", short(f.name), keyVariables)
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
			r.failAt(f.key, CodeFieldSpelling, "%s and %s are the same setting: keep one", found.name, f.name)
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
		r.fail(f.value, CodeTypeText, "%s: want text, got %s%s", f.name, kind(f.value), quoteHint(f.value))
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
		r.fail(f.value, CodeTypeInteger, "%s: want a whole number, got %s", f.name, describe(f.value))
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
	r.fail(f.value, CodeNumberRange, "%s: the number is too large", f.name)
	return 0, false
}

// filled returns a field's text, which is not empty, without white space around it; absent or null is "".
func (r *reader) filled(f field) string {
	s := strings.TrimSpace(r.text(f))
	if _, ok := f.value.(*ast.StringNode); ok && s == "" {
		r.fail(f.value, CodeTextEmpty, "%s: the text is empty; leave the field out", f.name)
	}
	return s
}

// choice returns a field's text, which is one of several; absent or null is "".
func (r *reader) choice(f field, code Code, among []string) string {
	s := r.text(f)
	if _, ok := f.value.(*ast.StringNode); ok && !contains(among, s) {
		r.fail(f.value, code, "unknown %s %q%s", f.name, short(s), suggest(s, among))
	}
	return s
}

// list returns the values of a list of such things; absent or null is none.
func (r *reader) list(f field, things string) []ast.Node {
	if f.null() {
		return nil
	}
	if _, ok := f.value.(*ast.SequenceNode); !ok {
		r.fail(f.value, CodeTypeList, "%s: want a list of %s, got %s", f.name, things, describe(f.value))
	}
	return r.values(f)
}

// values is list of a field whose kind has been looked at: it says nothing of what is no list.
func (r *reader) values(f field) []ast.Node {
	list, ok := f.value.(*ast.SequenceNode)
	if !ok {
		return nil
	}
	values := make([]ast.Node, len(list.Values))
	for i, n := range list.Values {
		values[i] = r.resolve(n)
	}
	return values
}

// texts returns a list of texts, each once and none empty. A value that is none of them is "", so that places stay.
func (r *reader) texts(f field, things string) []string {
	var list []string
	for _, n := range r.list(f, things) {
		s, ok := n.(*ast.StringNode)
		text := ""
		switch {
		case !ok:
			r.fail(n, CodeTypeText, "%s: want a text, got %s%s", f.name, kind(n), quoteHint(n))
		case strings.TrimSpace(s.Value) == "":
			r.fail(n, CodeTextEmpty, "%s: a text is empty", f.name)
		case contains(list, strings.TrimSpace(s.Value)):
			r.fail(n, CodeListDuplicate, "%s: %q stands in the list twice", f.name, short(s.Value))
		default:
			text = strings.TrimSpace(s.Value)
		}
		list = append(list, text)
	}
	return list
}

// some is texts of a list that means everything when it is absent, and so must not be empty.
func (r *reader) some(f field, things string) []string {
	if list, ok := f.value.(*ast.SequenceNode); ok && len(list.Values) == 0 {
		r.fail(f.value, CodeListEmpty, "%s: the list is empty; leave it out to mean all", f.name)
	}
	return r.texts(f, things)
}

// among is some of a list of known texts.
func (r *reader) among(f field, code Code, known []string) []string {
	list := r.some(f, "texts")
	for i, n := range r.values(f) {
		if s := list[i]; s != "" && !contains(known, s) {
			r.fail(n, code, "%s: unknown value %q%s", f.name, short(s), suggest(s, known))
		}
	}
	return list
}

// flag returns a field's true or false; absent or null is false.
func (r *reader) flag(f field) bool {
	if f.null() {
		return false
	}
	b, ok := f.value.(*ast.BoolNode)
	if !ok {
		r.fail(f.value, CodeTypeBoolean, "%s: want true or false, got %s", f.name, describe(f.value))
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
	case ast.MapNode:
		return "; if a text with a colon is meant, put it in quotes"
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
