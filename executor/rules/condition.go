package rules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/jetcrew/jetcrew/schema"
)

const (
	maxCost      = 100_000 // of one evaluation, in CEL's units; about one a step or ten characters of text
	maxTime      = time.Second
	maxCondition = 4096 // length of an expression, in characters
	checkEvery   = 16   // rounds of a loop between two looks at the clock
	maxWhy       = 200  // bytes of CEL's message within a decision
)

// condition is a compiled expression; the zero condition always holds.
type condition struct {
	program cel.Program
	loops   bool // over lists or maps
}

// holds evaluates the condition. An error says why it is neither true nor false.
func (c condition) holds(s *subject) (bool, error) {
	if c.program == nil {
		return true, nil
	}
	f, err := s.known()
	if err != nil {
		return false, err
	}
	v, err := c.eval(f)
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, errors.New("it gives neither true nor false")
	}
	return bool(b), nil
}

// eval bounds the time only of what loops: CEL counts the comparison of two maps as one step, however much they hold, so
// that a loop may take long at little cost.
func (c condition) eval(f *facts) (ref.Val, error) {
	if !c.loops {
		v, _, err := c.program.Eval(f)
		return v, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxTime)
	defer cancel()
	v, _, err := c.program.ContextEval(ctx, f)
	return v, err
}

// failed is what a decision's text says of a condition that could not be evaluated.
func failed(err error) string {
	return " (the condition of this rule could not be evaluated: " + schema.Cut(schema.CleanText(err.Error()), maxWhy) + ")"
}

// celEnv is CEL's environment, made when the first condition is compiled.
type celEnv struct{ env *cel.Env }

func (e *celEnv) get() (*cel.Env, error) {
	if e.env != nil {
		return e.env, nil
	}
	env, err := cel.NewEnv(
		cel.Variable(varArgs, cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable(varTool, cel.StringType),
		cel.Variable(varQueue, cel.StringType),
		cel.Variable(varSource, cel.StringType),
		cel.Variable(varEffect, cel.StringType),
		cel.Variable(varEnvironment, cel.StringType),
		cel.Variable(varPrincipal, cel.MapType(cel.StringType, cel.StringType)),
		cel.ParserExpressionSizeLimit(maxCondition),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
	)
	e.env = env
	return env, err
}

// condition compiles the expression at a path; an empty one always holds.
func (c *compiler) condition(path, text string) condition {
	if text == "" {
		return condition{}
	}
	env, err := c.cel.get()
	if err != nil {
		c.problems.add(path, CodeCondition, "CEL: %v", err)
		return condition{}
	}
	tree, issues := env.Compile(text)
	if issues.Err() != nil {
		for _, e := range issues.Errors() {
			c.problems = append(c.problems, Problem{
				Path: path, Code: CodeCondition, Text: celText(e.Message), Line: max(1, e.Location.Line()), Column: max(0, e.Location.Column()) + 1,
			})
		}
		return condition{}
	}
	if out := tree.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		c.problems.add(path, CodeCondition, "the condition gives %s, and has to give true or false", cel.FormatCELType(out))
	}
	c.principal(path, tree)
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	loops, cheap := effort(tree)
	if loops {
		options = append(options, cel.InterruptCheckFrequency(checkEvery))
	}
	if !cheap {
		options = append(options, cel.CostLimit(maxCost))
	}
	program, err := env.Program(tree, options...)
	if err != nil {
		c.problems.add(path, CodeCondition, "%s", celText(err.Error()))
	}
	return condition{program, loops}
}

// effort tells whether an expression goes over lists or maps, and whether it is cheap: its length alone, which is bounded, says how
// much it can do, and nobody has to count, for which every evaluation would need memory.
func effort(tree *cel.Ast) (loops, cheap bool) {
	cheap = true
	ast.PreOrderVisit(tree.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.ComprehensionKind:
			loops, cheap = true, false
		case ast.CallKind:
			cheap = cheap && slices.Contains(cheapCalls, e.AsCall().FunctionName())
		}
	}))
	return loops, cheap
}

// cheapCalls compare values that are there, and make no new ones.
var cheapCalls = []string{
	operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional, operators.Equals, operators.NotEquals,
	operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.Index, operators.Negate,
	overloads.StartsWith, overloads.EndsWith, overloads.Size,
}

// celText is a message of CEL as part of ours: without the container, which rules do not have, and the parser's list of
// what it would have taken.
func celText(message string) string {
	message = strings.ReplaceAll(strings.TrimSpace(message), " (in container '')", "")
	if text, ok := strings.CutPrefix(message, "Syntax error: "); ok {
		text, _, _ = strings.Cut(text, " expecting ")
		if text == "mismatched input '<EOF>'" {
			text = "the expression ends too early"
		}
		return "syntax error: " + text
	}
	return message
}

// principal refuses parts of the principal that it does not have: with a map, CEL would find that only at each call.
func (c *compiler) principal(path string, tree *cel.Ast) {
	native := tree.NativeRep()
	ast.PreOrderVisit(native.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		field, ok := principalField(e)
		if !ok || field == fieldID || field == fieldTenant {
			return
		}
		at := native.SourceInfo().GetStartLocation(e.ID())
		c.problems = append(c.problems, Problem{
			Path: path, Code: CodeCondition, Text: fmt.Sprintf("principal has no %.80q; there are %s and %s", field, fieldID, fieldTenant),
			Line: max(1, at.Line()), Column: max(0, at.Column()) + 1,
		})
	}))
}

// principalField returns the name in principal.name or principal["name"].
func principalField(e ast.Expr) (name string, ok bool) {
	is := func(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == varPrincipal }
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().FieldName(), is(e.AsSelect().Operand())
	case ast.CallKind:
		args := e.AsCall().Args()
		if e.AsCall().FunctionName() != operators.Index || !is(args[0]) || args[1].Kind() != ast.LiteralKind {
			return "", false
		}
		s, ok := args[1].AsLiteral().(types.String)
		return string(s), ok
	}
	return "", false
}
