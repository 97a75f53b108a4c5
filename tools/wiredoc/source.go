package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// source holds what reflection does not know: comments and the values of constants. Keys begin with the name of the
// package.
type source struct {
	fields   map[string]string     // "schema.Call.Run" → comment of the field
	consts   map[string][]constant // "schema.ErrorType" → its constants in order
	values   map[string]string     // "bus.codeStoreFailed" → the literal
	comments map[string]string     // "bus.codeStoreFailed" → comment of the constant
	payloads []string              // types that embed schema.Payload
}

type constant struct{ Value, Meaning string }

// readSource parses the packages of the contract.
func readSource(root string) (*source, error) {
	s := &source{fields: map[string]string{}, consts: map[string][]constant{}, values: map[string]string{}, comments: map[string]string{}}
	for _, pkg := range []string{"schema", "bus"} {
		files, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, path := range files {
			if err := s.readFile(pkg, path); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

func (s *source) readFile(pkg, path string) error {
	if strings.HasSuffix(path, "_test.go") {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range g.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				s.readType(pkg, spec)
			case *ast.ValueSpec:
				s.readConst(pkg, spec)
			}
		}
	}
	return nil
}

func (s *source) readType(pkg string, spec *ast.TypeSpec) {
	st, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	name := pkg + "." + spec.Name.Name
	for _, f := range st.Fields.List {
		if len(f.Names) == 0 && isPayload(f.Type) {
			s.payloads = append(s.payloads, name)
		}
		for _, id := range f.Names {
			s.fields[name+"."+id.Name] = comment(f.Comment, f.Doc)
		}
	}
}

// isPayload tells whether an embedded field is schema.Payload, from inside the package or outside.
func isPayload(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "Payload"
	case *ast.SelectorExpr:
		return e.Sel.Name == "Payload"
	}
	return false
}

// readConst keeps constants that are literals, and lists those of a named type under the type's name. An untyped
// group whose names share a first word, such as EffectRead, is listed under that word.
func (s *source) readConst(pkg string, spec *ast.ValueSpec) {
	if len(spec.Names) != 1 || len(spec.Values) != 1 {
		return
	}
	lit, ok := spec.Values[0].(*ast.BasicLit)
	if !ok {
		return
	}
	name, value := spec.Names[0].Name, strings.Trim(lit.Value, `"`)
	s.values[pkg+"."+name] = value
	s.comments[pkg+"."+name] = comment(spec.Comment, spec.Doc)
	group := firstWord(name)
	if t, ok := spec.Type.(*ast.Ident); ok {
		group = t.Name
	}
	s.consts[pkg+"."+group] = append(s.consts[pkg+"."+group], constant{value, comment(spec.Comment, spec.Doc)})
}

// firstWord returns the part of a Go name before its second capital.
func firstWord(name string) string {
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			return name[:i]
		}
	}
	return name
}

// comment returns the first comment that is there, on one line.
func comment(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if g != nil {
			return strings.Join(strings.Fields(g.Text()), " ")
		}
	}
	return ""
}
