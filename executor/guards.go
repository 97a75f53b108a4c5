package executor

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/jetcrew/jetcrew/schema"
)

// Guard decides at the orchestrator about calls before their turn is written, and may change what the memory shows of
// their results: what loop.Config.Guards takes. One guard serves many runs at once. It must not keep what it is given.
type Guard interface {
	// Decide returns what is to become of a call. The zero Action and ActionAllow let it go on. It may set call.Args and
	// call.Bound and must leave the rest.
	Decide(ctx context.Context, call *schema.TurnCall) schema.Decision
	// Settle sees the result of a call that was let through; changed says that the memory shows view instead.
	Settle(ctx context.Context, call *schema.TurnCall, result *schema.Result) (view string, changed bool)
}

// Authorizer is a Guard that is asked once more about a call that a person approved, perhaps with other arguments. It
// changes nothing.
type Authorizer interface {
	Authorize(ctx context.Context, call *schema.TurnCall) schema.Decision
}

// textWithheld is in place of the output when a guard panics that had to look at it: it may be the one that takes secrets out.
const textWithheld = "a check of this call's result failed, so the output is withheld; the call did run"

// Guards is several guards as one, asked in their order. A denial, guidance, redirection or invalid call ends the asking;
// an ask goes on, since a later guard may deny, and then wins over allowing; several are one question, with all of their
// rules. A guard that panics denies.
type Guards struct {
	members []Guard
	log     *slog.Logger
}

// NewGuards returns the composite of members. Panics go to log, or to slog.Default() if it is nil. A nil member is a
// programmer's mistake and panics: nobody shall think that it guards.
func NewGuards(log *slog.Logger, members ...Guard) *Guards {
	if log == nil {
		log = slog.Default()
	}
	for i, m := range members {
		if m == nil {
			panic(fmt.Sprintf("guards: guard %d is nil", i+1))
		}
	}
	return &Guards{members: members, log: log}
}

// Decide asks the guards. Of what one of them changes, arguments and bound values are kept, the arguments in their
// canonical form: none can show another tool to those behind it.
func (g *Guards) Decide(ctx context.Context, call *schema.TurnCall) schema.Decision {
	var asked schema.Decision
	for _, m := range g.members {
		before := *call
		d := g.decide(ctx, m, call)
		if !d.Ends() {
			d = d.And(canonicalArgs(call, before.Args))
		}
		args, bound := call.Args, call.Bound
		*call = before
		if d.Ends() {
			return d
		}
		call.Args, call.Bound = args, bound
		asked = asked.And(d)
	}
	return asked
}

// Authorize asks those guards that are Authorizers. Where all that ask had asked before, it names the rules of that time, as
// they stand in call.Decision: the approval was for them.
func (g *Guards) Authorize(ctx context.Context, call *schema.TurnCall) schema.Decision {
	var asked schema.Decision
	for _, m := range g.members {
		a, ok := m.(Authorizer)
		if !ok {
			continue
		}
		before := *call
		d := g.authorize(ctx, a, call)
		*call = before
		if d.Ends() {
			return d
		}
		asked = asked.And(d)
	}
	if asked.Action == schema.ActionAsk && call.Decision.Action == schema.ActionAsk && schema.RulesCovered(asked.Rule, call.Decision.Rule) {
		asked.Rule = call.Decision.Rule
	}
	return asked
}

// Settle gives each guard what those before it made of the text: what one has withheld, none behind it sees.
func (g *Guards) Settle(ctx context.Context, call *schema.TurnCall, result *schema.Result) (view string, changed bool) {
	c, r := *call, *result
	for _, m := range g.members {
		if changed {
			result.Output = view
		}
		if made, ok := g.settle(ctx, m, call, result); ok {
			view, changed = made, true
		}
		*call, *result = c, r
	}
	return view, changed
}

func (g *Guards) decide(ctx context.Context, m Guard, call *schema.TurnCall) (d schema.Decision) {
	defer g.deny(ctx, call, &d)
	return m.Decide(ctx, call)
}

func (g *Guards) authorize(ctx context.Context, m Authorizer, call *schema.TurnCall) (d schema.Decision) {
	defer g.deny(ctx, call, &d)
	return m.Authorize(ctx, call)
}

func (g *Guards) settle(ctx context.Context, m Guard, call *schema.TurnCall, r *schema.Result) (view string, changed bool) {
	defer func() {
		if v := recover(); v != nil {
			g.logPanic(ctx, call, v)
			view, changed = schema.DeniedText(textWithheld), true
		}
	}()
	return m.Settle(ctx, call, r)
}

// deny is deferred around a guard.
func (g *Guards) deny(ctx context.Context, call *schema.TurnCall, d *schema.Decision) {
	if v := recover(); v != nil {
		g.logPanic(ctx, call, v)
		*d = schema.GuardPanicked()
	}
}

func (g *Guards) logPanic(ctx context.Context, call *schema.TurnCall, v any) {
	g.log.LogAttrs(ctx, slog.LevelError, "a guard panicked", slog.String("run", schema.SceneOf(ctx).Run),
		slog.String("tool", schema.Cut(clean(call.Tool), 80)), slog.String("panic", schema.Cut(clean(fmt.Sprint(v)), 1024)),
		slog.String("stack", string(debug.Stack())))
}

// canonicalArgs brings arguments that differ from before into the form that all readers expect.
func canonicalArgs(call *schema.TurnCall, before schema.JSONText) schema.Decision {
	if call.Args == before {
		return schema.Decision{}
	}
	args, _, err := schema.Canonical(string(call.Args))
	if err != nil {
		return invalid("structure", err)
	}
	call.Args = args
	return schema.Decision{}
}

func invalid(rule string, err *schema.Error) schema.Decision {
	return schema.Decision{Action: schema.ActionInvalid, Rule: rule, Type: err.Type, Text: err.Message}
}

// targetOf is the tool of a call as its queue knows it: what rules name, whatever name the model sees.
func targetOf(call *schema.TurnCall) string {
	if call.Target != "" {
		return call.Target
	}
	return call.Tool
}
