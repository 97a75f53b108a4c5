package loop_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/schema"
)

// decide is a guard of one function.
type decide func(*schema.TurnCall) schema.Decision

func (d decide) Decide(_ context.Context, c *schema.TurnCall) schema.Decision { return d(c) }

func (decide) Settle(context.Context, *schema.TurnCall, *schema.Result) (string, bool) {
	return "", false
}

// redact takes "fine" out of outputs.
type redact struct{}

func (redact) Decide(context.Context, *schema.TurnCall) schema.Decision { return schema.Decision{} }

func (redact) Settle(_ context.Context, _ *schema.TurnCall, r *schema.Result) (string, bool) {
	view := strings.ReplaceAll(r.Output, "fine", "[redacted]")
	return view, view != r.Output
}

// blind panics after the call.
type blind struct{ redact }

func (blind) Settle(context.Context, *schema.TurnCall, *schema.Result) (string, bool) { panic("blind") }

func TestGuardDecisions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		guards []loop.Guard
		reads  string
	}{
		{"none", nil, `{"a":1}`},
		{"zero decision", []loop.Guard{decide(func(*schema.TurnCall) schema.Decision { return schema.Decision{} })}, `{"a":1}`},
		{"deny", []loop.Guard{by(schema.ActionDeny, "not here")}, "DENIED: not here"},
		{"guide", []loop.Guard{by(schema.ActionGuide, "use b.")}, "GUIDANCE: use b. Adjust the parameters and retry."},
		{"redirect", []loop.Guard{by(schema.ActionRedirect, "ask ok.")}, "REDIRECT: ask ok. Use the alternative."},
		{"first wins", []loop.Guard{by(schema.ActionAllow, ""), by(schema.ActionGuide, "one."), by(schema.ActionDeny, "two")}, "GUIDANCE: one. Adjust the parameters and retry."},
		{"unknown action", []loop.Guard{by("maybe", "odd")}, "DENIED: odd"},
		{"panic", []loop.Guard{decide(func(*schema.TurnCall) schema.Decision { panic("oh") })}, "DENIED: a check of this call failed, so it did not run"},
		{"changed arguments", []loop.Guard{decide(func(c *schema.TurnCall) schema.Decision {
			c.Args, c.Tool, c.Label = `{"a":2}`, "fail", "x"
			return schema.Decision{}
		})}, `{"a":2}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(looptest.Calls(schema.RawCall{Name: "echo", Args: `{"a":1}`}), looptest.Text("done"))
			r.cfg.Guards = tt.guards
			_, run := r.run(t)
			if diff := cmp.Diff([]string{tt.reads}, texts(results(run))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func by(action schema.Action, text string) decide {
	return func(*schema.TurnCall) schema.Decision { return schema.Decision{Action: action, Text: text} }
}

func TestGuardChangedArgumentsAreValidatedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(looptest.Calls(schema.RawCall{Name: "strict", Args: `{"n":1}`}), looptest.Text("done"))
	r.bus.Tool(schema.Tool{Name: "strict", Parameters: `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`},
		func(context.Context, *schema.Call) (string, error) { return "ran", nil })
	r.cfg.Guards = []loop.Guard{decide(func(c *schema.TurnCall) schema.Decision {
		c.Args = `{"n":"one"}`
		return schema.Decision{}
	})}
	_, run := r.run(t)
	c := run.State().Turn(1).Calls[0]
	if c.Decision.Type != schema.InvalidArguments || c.Raw != `{"n":1}` || r.bus.MostUnderWay() != 0 {
		t.Errorf("call %+v", c)
	}
}

func TestGuardBindsValues(t *testing.T) {
	t.Parallel()
	r := newRig(calls("who"), looptest.Text("done"))
	r.tool("who", func(_ context.Context, c *schema.Call) (string, error) { return string(c.Bound), nil })
	r.cfg.Guards = []loop.Guard{decide(func(c *schema.TurnCall) schema.Decision {
		c.Bound = `{"tenant":"t1"}`
		return schema.Decision{}
	})}
	_, run := r.run(t)
	if diff := cmp.Diff([]string{`{"tenant":"t1"}`}, texts(results(run))); diff != "" {
		t.Error(diff)
	}
}

func TestGuardViews(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		guards []loop.Guard
		reads  string
	}{
		{"changed", []loop.Guard{redact{}}, "[redacted]"},
		{"twice", []loop.Guard{redact{}, redact{}}, "[redacted]"},
		{"panic withholds", []loop.Guard{blind{}}, "DENIED: a check of this call's result failed, so the output is withheld; the call did run"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(calls("ok"), looptest.Text("done"))
			r.cfg.Guards = tt.guards
			_, run := r.run(t)
			if diff := cmp.Diff([]string{tt.reads}, texts(results(run))); diff != "" {
				t.Error(diff)
			}
			var v schema.View
			if !r.bus.Fact(run.ID(), schema.ViewKey(1, 0), &v) || v.Text != tt.reads || run.State().Result(1, 0).Output != "fine" {
				t.Errorf("view %+v", v)
			}
		})
	}
}
