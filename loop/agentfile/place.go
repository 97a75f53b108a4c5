package agentfile

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// rootPath is the path of the whole file. Below it a path reads like $.policy.rules[0].effects[1].
const rootPath = "$"

// plainKey is a field's name that a path shows as it is.
var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func below(path, key string) string {
	if plainKey.MatchString(key) {
		return path + "." + key
	}
	return path + "[" + strconv.Quote(key) + "]"
}

func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// places says where the tokens of a file stand.
type places struct {
	paths  map[*token.Token]string       // of the tokens that a value and its first part share the value's path counts
	blocks map[*token.Token]*token.Token // by the text of a block its sign, | or >, which has a place that can be relied on
}

func newPlaces(root ast.Node) places {
	p := places{map[*token.Token]string{}, map[*token.Token]*token.Token{}}
	p.walk(root, rootPath)
	return p
}

func (p places) set(n ast.Node, path string) {
	if n == nil {
		return
	}
	if tok := n.GetToken(); tok != nil {
		if _, ok := p.paths[tok]; !ok {
			p.paths[tok] = path
		}
	}
}

// walk notes n, which stands at path, and what is in it. Aliases are not followed: what they name has its own place.
func (p places) walk(n ast.Node, path string) {
	p.set(n, path)
	switch n := n.(type) {
	case *ast.AnchorNode:
		p.walk(n.Value, path)
	case *ast.TagNode:
		p.walk(n.Value, path)
	case *ast.LiteralNode:
		if n.Value != nil {
			p.set(n.Value, path)
			p.blocks[n.Value.GetToken()] = n.Start
		}
	case *ast.SequenceNode:
		for i, v := range n.Values {
			p.walk(v, item(path, i))
		}
	case ast.MapNode:
		for it := n.MapRange(); it.Next(); {
			at := below(path, it.Key().GetToken().Value)
			p.set(it.Key(), at)
			p.walk(it.Value(), at)
		}
	}
}

// segment is one step of a path: a field or the place in a list.
type segment struct {
	key   string
	index int // -1: key counts
}

var segments = regexp.MustCompile(`\.?([^.\[\]]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]`)

func splitPath(path string) []segment {
	var list []segment
	for _, m := range segments.FindAllStringSubmatch(strings.TrimPrefix(path, rootPath), -1) {
		switch {
		case m[2] != "":
			if i, err := strconv.Atoi(m[2]); err == nil {
				list = append(list, segment{index: i})
			}
		case m[3] != "":
			key, _ := strconv.Unquote(m[3])
			list = append(list, segment{key: key, index: -1})
		default:
			list = append(list, segment{key: m[1], index: -1})
		}
	}
	return list
}

// wireNames are the fields of schema.Governance that a file calls otherwise than in camelCase: by what they may stand as.
var wireNames = map[string][]string{
	"action":     {"allow", "deny", "ask", "block", "guide", "fallback"},
	"text":       {"block", "deny", "guide", "fallback", "ask", "allow"},
	"timeout_ms": {"timeout", "timeoutMillis", "timeout_millis"},
	"expires_ms": {"expires", "expiresMillis", "expires_millis"},
	"allowed":    {"allowedTools", "allowed_tools"},
	"denied":     {"deniedTools", "denied_tools"},
	"handoff":    {"policy"},
}

// find returns the value at path, or the nearest one around it, and the path of what was found. A path begins with $,
// or it is one of schema.Governance, with the names that fields have in JSON.
func (r *reader) find(path string) (at *token.Token, found string) {
	steps := splitPath(path)
	if !strings.HasPrefix(path, rootPath) {
		steps = r.inFile(steps)
	}
	found = rootPath
	n := r.resolve(r.root)
	at = start(n)
	for _, s := range steps {
		key, next, ok := r.step(n, s)
		if !ok {
			break
		}
		n = r.resolve(next)
		at = start(n)
		if key == nil {
			found = item(found, s.index)
			continue
		}
		found = below(found, key.Value)
		if _, null := n.(*ast.NullNode); null {
			at = key
		}
	}
	return at, found
}

// into moves a problem with a text to a line and a column of it. It stays where it is when the text was written in a way
// that does not show them, such as with line breaks that YAML removes.
func (r *reader) into(p Problem, tok *token.Token, line, column int) Problem {
	if l, c, ok := r.within(tok, line, column); ok {
		p.Line, p.Column, p.Excerpt = l, c, r.problem(l, c, p.Code, "").Excerpt
	}
	return p
}

// within returns where a line and a column of a text stand in the file.
func (r *reader) within(tok *token.Token, line, column int) (atLine, atColumn int, ok bool) {
	text := strings.Split(tok.Value, "\n")
	if line < 1 || line > len(text) || column < 1 {
		return 0, 0, false
	}
	atLine, from := tok.Position.Line+line-1, tok.Position.Column-1
	if block := r.places.blocks[tok]; block != nil {
		atLine, from = block.Position.Line+line, 0
	}
	if atLine > len(r.lines) {
		return 0, 0, false
	}
	shown := []rune(r.lines[atLine-1])
	before, _, found := strings.Cut(string(shown[min(from, len(shown)):]), strings.TrimRight(text[line-1], " "))
	return atLine, from + len([]rune(before)) + column, found
}

// inFile turns the steps of a path of schema.Governance into those of the file: only tools that set something are in
// Governance.Tools.
func (r *reader) inFile(steps []segment) []segment {
	if len(steps) > 1 && steps[0].key == fieldTools && steps[1].index >= 0 && steps[1].index < len(r.settings) {
		steps = slices.Clone(steps)
		steps[1].index = r.settings[steps[1].index]
	}
	return steps
}

// step goes one step from n on; key is the field's name in the file.
func (r *reader) step(n ast.Node, s segment) (key *token.Token, next ast.Node, ok bool) {
	if list, isList := n.(*ast.SequenceNode); isList && s.index >= 0 && s.index < len(list.Values) {
		return nil, list.Values[s.index], true
	}
	m, isMap := n.(ast.MapNode)
	if !isMap || s.index >= 0 {
		return nil, nil, false
	}
	for _, name := range slices.Concat([]string{s.key, camel(s.key), snake(s.key)}, wireNames[s.key]) {
		for it := m.MapRange(); it.Next(); {
			if it.Key().GetToken().Value == name {
				return it.Key().GetToken(), it.Value(), true
			}
		}
	}
	return nil, nil, false
}

// start is the token at which a value begins. That of a block of fields is its first colon, so its first name counts.
func start(n ast.Node) *token.Token {
	if m, ok := n.(ast.MapNode); ok {
		if it := m.MapRange(); it.Next() && n.GetToken().Value != "{" {
			return it.Key().GetToken()
		}
	}
	return n.GetToken()
}

// camel is a snake_case name in camelCase.
func camel(name string) string {
	parts := strings.Split(name, "_")
	for i, p := range parts[1:] {
		if p != "" {
			parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, "")
}
