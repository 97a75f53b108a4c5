package rules_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/jetcrew/jetcrew/executor/rules"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// failer is what tests, benchmarks and properties have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
}

func compile(t failer, g *schema.Governance) *rules.Rules {
	t.Helper()
	r, err := rules.Compile(g)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var (
	_ loop.Guard      = (*rules.Rules)(nil)
	_ loop.Authorizer = (*rules.Rules)(nil)
	_ loop.Guard      = (*rules.Step)(nil)
	_ loop.Authorizer = (*rules.Step)(nil)
)

// decide returns what r decides about a call of tool with args.
func decide(r *rules.Rules, tool string, args schema.JSONText) schema.Decision {
	return r.Decide(context.Background(), &schema.TurnCall{Tool: tool, Queue: "q", Args: args})
}

// outcome is an action with both forms of going on as one.
func outcome(d schema.Decision) schema.Action {
	if d.Action == "" {
		return schema.ActionAllow
	}
	return d.Action
}
