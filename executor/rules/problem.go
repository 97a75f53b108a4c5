package rules

import (
	"fmt"
	"strings"
)

// The codes of problems.
const (
	CodeUnknown   = "unknown"   // a value that is none of those there are: action, effect, risk, autonomy, approval, preset, variable
	CodeMissing   = "missing"   // something that is needed here is not there
	CodePattern   = "pattern"   // a pattern that can name no tool
	CodeCondition = "condition" // an expression that CEL does not take
	CodeBind      = "bind"      // values to bind that are no JSON object, or hold a variable wrongly
	CodeRange     = "range"     // a number out of range
	CodeName      = "name"      // a name with signs that it cannot have
	CodeDuplicate = "duplicate" // a name that two rules share
)

// Problem is one thing that is wrong with a governance.
type Problem struct {
	Path   string // such as filters[0].when, with the keys of the governance's JSON form
	Code   string // one of the codes
	Text   string // what is wrong and what to do, without the path
	Line   int    // within a condition, from 1; 0: the problem is no place in a condition
	Column int    // within that line, in characters from 1
}

// String returns path, text and place.
func (p Problem) String() string { return p.Path + ": " + p.Message() }

// Message returns text and place, for who shows the path in another way.
func (p Problem) Message() string {
	switch p.Line {
	case 0:
		return p.Text
	case 1:
		return fmt.Sprintf("%s (column %d)", p.Text, p.Column)
	}
	return fmt.Sprintf("%s (line %d, column %d)", p.Text, p.Line, p.Column)
}

// Problems are all problems of a governance, in its order. It is the type of Compile's errors.
type Problems []Problem

// Error returns the problems, one a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i := range ps {
		lines[i] = ps[i].String()
	}
	return "governance: " + strings.Join(lines, "\n")
}

func (ps *Problems) add(path, code, format string, args ...any) {
	*ps = append(*ps, Problem{Path: path, Code: code, Text: fmt.Sprintf(format, args...)})
}
