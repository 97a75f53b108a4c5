package agentfile

import (
	"errors"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a file's structure. The parser's time grows with the square of each.
const (
	maxNesting   = 32
	maxPerLine   = 500    // tokens
	maxTokens    = 10_000 // of the whole file; a block of text is one
	maxExpansion = 10_000
)

// parse returns the body of the file's one document, or what is wrong with it. Duplicate keys are left to the reader,
// so that they are reported along with everything else.
func parse(src source, data []byte) (body ast.Node, problem *Problem) {
	fail := func(tok *token.Token, code Code, format string, args ...any) *Problem {
		p := src.problem(1, 1, code, format, args...)
		if tok != nil && tok.Position != nil {
			p = src.problem(tok.Position.Line, tok.Position.Column, code, format, args...)
		}
		return &p
	}
	defer func() {
		if r := recover(); r != nil { // a bug of the parser costs an error, not the process
			body, problem = nil, fail(nil, CodeYAML, "the file cannot be read as YAML")
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if tok, why := tooMuch(tokens); tok != nil {
		return nil, fail(tok, CodeYAMLSize, "%s for an agent file", why)
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var at yaml.Error
		if errors.As(err, &at) {
			return nil, fail(at.GetToken(), CodeYAML, "%s", at.GetMessage())
		}
		return nil, fail(nil, CodeYAML, "%v", err)
	}
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentGroupType:
		case body != nil:
			return nil, fail(doc.Start, CodeDocuments, "more than one document: a file describes one agent")
		default:
			body = doc.Body
		}
	}
	if body == nil {
		return nil, fail(nil, CodeDocument, "the file is empty; it starts with version: %s", Version)
	}
	return body, nil
}

// tooMuch returns the token where the file becomes too deep, a line too crowded or the whole too long, and which of
// these; nil if it does not.
func tooMuch(tokens token.Tokens) (*token.Token, string) {
	depth, line, crowd := 0, 0, 0
	for i, tok := range tokens {
		switch tok.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		}
		if tok.Position.Line != line {
			line, crowd = tok.Position.Line, 0
		}
		switch crowd++; {
		case depth > maxNesting:
			return tok, "too deeply nested"
		case crowd > maxPerLine:
			return tok, "too many values in one line"
		case i > maxTokens:
			return tok, "too many fields and values"
		}
	}
	return nil, ""
}

// finder collects the anchors and aliases below a node.
type finder struct {
	anchors []*ast.AnchorNode
	aliases []*ast.AliasNode
}

// Visit notes a node and goes on below it.
func (f *finder) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.AnchorNode:
		f.anchors = append(f.anchors, n)
	case *ast.AliasNode:
		f.aliases = append(f.aliases, n)
	}
	return f
}

// anchors learns what the anchors name and tells whether every alias has an end: an anchor that contains itself, over
// however many steps, is refused, as is an alias of nothing.
func (r *reader) anchors(root ast.Node) bool {
	var all finder
	ast.Walk(&all, root)
	for _, a := range all.anchors {
		r.named[a.Name.GetToken().Value] = a.Value
	}
	for _, alias := range all.aliases {
		name := alias.Value.GetToken().Value
		if r.named[name] == nil {
			r.fail(alias, CodeAliasUnknown, "alias *%s: no such anchor", name)
		} else if r.contains(name, name, map[string]bool{}) {
			r.fail(alias, CodeRecursive, "anchor &%s contains itself", name)
		}
	}
	return len(r.problems) == 0
}

// contains tells whether the value of anchor leads to target.
func (r *reader) contains(anchor, target string, seen map[string]bool) bool {
	if seen[anchor] || r.named[anchor] == nil {
		return false
	}
	seen[anchor] = true
	var below finder
	ast.Walk(&below, r.named[anchor])
	for _, alias := range below.aliases {
		name := alias.Value.GetToken().Value
		if name == target || r.contains(name, target, seen) {
			return true
		}
	}
	return false
}

// resolve looks through anchors, aliases and quotes of blocks. Each look counts, so that aliases of aliases cannot
// make a small file a large one.
func (r *reader) resolve(n ast.Node) ast.Node {
	for {
		if r.looks++; r.looks == maxExpansion+1 {
			r.fail(n, CodeYAMLSize, "too large once its aliases are put in")
		}
		switch at := n.(type) {
		case *ast.AnchorNode:
			n = at.Value
		case *ast.AliasNode:
			n = r.named[at.Value.GetToken().Value]
		case *ast.LiteralNode:
			return at.Value
		case nil:
			return nullNode
		default:
			return n
		}
		if r.looks > maxExpansion {
			return nullNode
		}
	}
}

// nullNode stands for a value that is not there.
var nullNode ast.Node = ast.Null(token.New("null", "null", &token.Position{Line: 1, Column: 1}))

// kind says what n is, in the words of a person who wrote it.
func kind(n ast.Node) string {
	switch n.(type) {
	case *ast.NullNode:
		return "nothing"
	case *ast.BoolNode:
		return "true or false"
	case *ast.IntegerNode, *ast.FloatNode:
		return "a number"
	case *ast.InfinityNode, *ast.NanNode:
		return "a number without digits"
	case *ast.StringNode:
		return "text"
	case *ast.SequenceNode:
		return "a list"
	case ast.MapNode:
		return "fields"
	case *ast.TagNode:
		return "a tag"
	}
	return "something else"
}
