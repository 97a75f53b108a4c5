package executor_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

// before is a guard that decides.
func before(name string, f func(*schema.TurnCall) schema.Decision) *executor.Hook {
	return &executor.Hook{Name: name, Before: func(_ context.Context, c *schema.TurnCall) schema.Decision { return f(c) }}
}

// after is a guard that changes texts.
func after(f func(string) (string, bool)) *executor.Hook {
	return &executor.Hook{After: func(_ context.Context, _ *schema.TurnCall, r *schema.Result) (string, bool) { return f(r.Output) }}
}

func decides(name string, d schema.Decision) *executor.Hook {
	return before(name, func(*schema.TurnCall) schema.Decision { return d })
}

func asks(name string) *executor.Hook {
	return decides(name, schema.Decision{Action: schema.ActionAsk, Text: "may it?"})
}

func setsArgs(args schema.JSONText) *executor.Hook {
	return before("edit", func(c *schema.TurnCall) schema.Decision { c.Args = args; return schema.Decision{} })
}

func guards(members ...executor.Guard) *executor.Guards {
	return executor.NewGuards(slog.New(slog.DiscardHandler), members...)
}

func TestGuardsDecide(t *testing.T) {
	t.Parallel()
	panics := before("panic", func(*schema.TurnCall) schema.Decision { panic("oh") })
	allow, nothing := decides("allow", executor.Allow()), &executor.Hook{}
	tests := []struct {
		name    string
		members []executor.Guard
		want    schema.Action
		rule    string
		text    string
	}{
		{"none", nil, "", "", ""},
		{"allow", []executor.Guard{nothing, allow}, schema.ActionAllow, "", ""},
		{"deny", []executor.Guard{allow, decides("d", executor.Block("no")), allow}, schema.ActionDeny, "d", "no"},
		{"the first of two", []executor.Guard{decides("g", executor.Guide("so.")), decides("d", executor.Block("no"))}, schema.ActionGuide, "g", "so."},
		{"redirect", []executor.Guard{decides("r", executor.Fallback("that."))}, schema.ActionRedirect, "r", "that."},
		{"ask beats allow", []executor.Guard{asks("a"), allow}, schema.ActionAsk, "a", "may it?"},
		{"two asks are one", []executor.Guard{asks("a"), allow, asks("b")}, schema.ActionAsk, "a, b", "may it?"},
		{"the same ask twice", []executor.Guard{asks("a"), asks("a")}, schema.ActionAsk, "a", "may it?"},
		{"deny beats ask", []executor.Guard{asks("a"), decides("d", executor.Block("no"))}, schema.ActionDeny, "d", "no"},
		{"guide beats ask", []executor.Guard{asks("a"), decides("g", executor.Guide("so."))}, schema.ActionGuide, "g", "so."},
		{"redirect beats ask", []executor.Guard{asks("a"), decides("r", executor.Fallback("that."))}, schema.ActionRedirect, "r", "that."},
		{"unknown beats ask", []executor.Guard{asks("a"), decides("u", schema.Decision{Action: "maybe"})}, "maybe", "u", ""},
		{"panic", []executor.Guard{allow, panics}, schema.ActionDeny, "guard_panic", "a check of this call failed, so it did not run"},
		{"panic beats ask", []executor.Guard{asks("a"), panics}, schema.ActionDeny, "guard_panic", "a check of this call failed, so it did not run"},
		{"composite in a composite", []executor.Guard{guards(asks("a")), guards(allow, panics)}, schema.ActionDeny, "guard_panic", "a check of this call failed, so it did not run"},
		{"filter panics", []executor.Guard{executor.NewFilter(func(context.Context, *schema.TurnCall) schema.Decision { panic("oh") })}, schema.ActionDeny, "guard_panic", "a check of this call failed, so it did not run"},
		{"broken arguments", []executor.Guard{setsArgs(`{"a":1,"a":2}`)}, schema.ActionInvalid, "structure", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := guards(tt.members...).Decide(t.Context(), turnCall("t", "{}"))
			if got.Action != tt.want || got.Rule != tt.rule || tt.text != "" && got.Text != tt.text {
				t.Errorf("got %+v, want %s by %q: %s", got, tt.want, tt.rule, tt.text)
			}
		})
	}
}

// A call that one guard stops reaches none behind it.
func TestGuardsStop(t *testing.T) {
	t.Parallel()
	reached := 0
	policy := before("policy", func(*schema.TurnCall) schema.Decision { reached++; return executor.Allow() })
	g := guards(executor.NewFilter(steer), policy)
	for _, tool := range []string{"sql_query", "serpapi", "brave_search"} {
		if got := reads(g.Decide(t.Context(), turnCall(tool, "{}"))); got == "" || reached != 0 {
			t.Errorf("%s: the model reads %q, the policy was asked %d times", tool, got, reached)
		}
	}
	if got := reads(g.Decide(t.Context(), turnCall("other", "{}"))); got != "" || reached != 1 {
		t.Errorf("other: the model reads %q, the policy was asked %d times", got, reached)
	}
}

// What a guard changes reaches those behind it, in canonical form; what it must not change does not.
func TestGuardsShowWhatWasChanged(t *testing.T) {
	t.Parallel()
	var seen schema.TurnCall
	edit := before("edit", func(c *schema.TurnCall) schema.Decision {
		c.Args, c.Bound = " { \"a\" : 2 } ", `{"x":1}`
		c.Tool, c.Target, c.Queue, c.Effect, c.Label = "harmless", "harmless", "other", schema.EffectRead, "l"
		return schema.Decision{}
	})
	look := before("look", func(c *schema.TurnCall) schema.Decision { seen = *c; return schema.Decision{} })
	call, want := turnCall("t", `{"a":1}`), turnCall("t", `{"a":2}`)
	want.Bound = `{"x":1}`
	guards(edit, look).Decide(t.Context(), call)
	for name, got := range map[string]*schema.TurnCall{"the next guard": &seen, "the loop": call} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s sees: %s", name, diff)
		}
	}
}

func TestGuardsAuthorize(t *testing.T) {
	t.Parallel()
	f := executor.NewFilter(nil)
	g := guards(decides("hook", executor.Block("asked again")), f, guards(f))
	if d := g.Authorize(t.Context(), turnCall("sql_query", "{}")); d.Action != "" && d.Action != schema.ActionAllow {
		t.Errorf("got %+v", d)
	}
	f.Replace(steer)
	call := turnCall("sql_query", "{}")
	if d := g.Authorize(t.Context(), call); d.Action != schema.ActionDeny || d.Rule != "filter" {
		t.Errorf("a tightened filter: got %+v", d)
	}
	f.Replace(func(context.Context, *schema.TurnCall) schema.Decision { panic("oh") })
	if d := g.Authorize(t.Context(), call); d.Action != schema.ActionDeny || d.Rule != "guard_panic" {
		t.Errorf("a panic: got %+v", d)
	}
	f.Replace(func(context.Context, *schema.TurnCall) schema.Decision {
		return schema.Decision{Action: schema.ActionAsk}
	})
	if d := g.Authorize(t.Context(), call); d.Action != schema.ActionAsk {
		t.Errorf("ask again: got %+v", d)
	}
}

// asker asks by its rule, again after an approval; "" allows.
type asker struct{ rule string }

func (a *asker) Decide(context.Context, *schema.TurnCall) schema.Decision {
	if a.rule == "" {
		return executor.Allow()
	}
	return schema.Decision{Action: schema.ActionAsk, Rule: a.rule}
}

func (a *asker) Authorize(ctx context.Context, c *schema.TurnCall) schema.Decision {
	return a.Decide(ctx, c)
}

func (*asker) Settle(context.Context, *schema.TurnCall, *schema.Result) (string, bool) {
	return "", false
}

// An approval covers the rules that asked for it and no other.
func TestGuardsAskAgain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		then, now  [2]string // rules of two guards
		hook       bool      // that asks at first only
		asked, got string    // rule
	}{
		{"the same", [2]string{"a", "b"}, [2]string{"a", "b"}, false, "a, b", "a, b"},
		{"with a hook", [2]string{"a", "b"}, [2]string{"a", "b"}, true, "hook, a, b", "hook, a, b"},
		{"only a hook", [2]string{}, [2]string{}, true, "hook", ""},
		{"one less", [2]string{"a", "b"}, [2]string{"", "b"}, false, "a, b", "a, b"},
		{"one more", [2]string{"a", ""}, [2]string{"a", "b"}, false, "a", "a, b"},
		{"one more before", [2]string{"", "b"}, [2]string{"a", "b"}, false, "b", "a, b"},
		{"another", [2]string{"a", ""}, [2]string{"c", ""}, false, "a", "c"},
	}
	for _, tt := range tests {
		one, two := &asker{tt.then[0]}, &asker{tt.then[1]}
		g := guards(one, two)
		if tt.hook {
			g = guards(asks("hook"), one, two)
		}
		c := turnCall("t", "{}")
		c.Decision = g.Decide(t.Context(), c)
		one.rule, two.rule = tt.now[0], tt.now[1]
		if got := g.Authorize(t.Context(), c); c.Decision.Rule != tt.asked || got.Rule != tt.got {
			t.Errorf("%s: asked by %q, want %q; then by %q, want %q", tt.name, c.Decision.Rule, tt.asked, got.Rule, tt.got)
		}
	}
}

func TestGuardsSettle(t *testing.T) {
	t.Parallel()
	without := func(secret string) *executor.Hook {
		return after(func(s string) (string, bool) {
			made := strings.ReplaceAll(s, secret, "[secret]")
			return made, made != s
		})
	}
	withhold := after(func(s string) (string, bool) {
		if strings.Contains(s, "key") {
			return executor.Withhold("the output holds a key")
		}
		return "", false
	})
	blind := after(func(string) (string, bool) { panic("blind") })
	tests := []struct {
		name    string
		members []executor.Guard
		want    string
		changed bool
	}{
		{"none", nil, "", false},
		{"nobody changes", []executor.Guard{&executor.Hook{}, without("no such")}, "", false},
		{"one", []executor.Guard{without("key")}, "a [secret] and a word", true},
		{"each sees the former's", []executor.Guard{without("key"), without("[secret] and a word")}, "a [secret]", true},
		{"withheld", []executor.Guard{withhold}, "DENIED: the output holds a key", true},
		{"taken out before", []executor.Guard{without("key"), withhold}, "a [secret] and a word", true},
		{"withheld, and nothing shines through", []executor.Guard{withhold, without("word")}, "DENIED: the output holds a key", true},
		{"panic withholds", []executor.Guard{blind}, "DENIED: a check of this call's result failed, so the output is withheld; the call did run", true},
		{"panic after a change", []executor.Guard{without("key"), blind}, "DENIED: a check of this call's result failed, so the output is withheld; the call did run", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := &schema.Result{OK: true, Output: "a key and a word"}
			view, changed := guards(tt.members...).Settle(t.Context(), turnCall("t", "{}"), r)
			if view != tt.want || changed != tt.changed {
				t.Errorf("got %q, %v, want %q, %v", view, changed, tt.want, tt.changed)
			}
			if r.Output != "a key and a word" {
				t.Errorf("the result itself became %q", r.Output)
			}
		})
	}
}

func TestGuardsLogPanics(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	g := executor.NewGuards(slog.New(slog.NewTextHandler(&log, nil)), &executor.Hook{
		Before: func(context.Context, *schema.TurnCall) schema.Decision { panic("nobody home") },
		After:  func(context.Context, *schema.TurnCall, *schema.Result) (string, bool) { panic("nor here") },
	})
	ctx := schema.WithScene(t.Context(), schema.Scene{Run: "r7"})
	g.Decide(ctx, turnCall("t", "{}"))
	g.Settle(ctx, turnCall("t", "{}"), &schema.Result{})
	for _, want := range []string{"run=r7", "tool=t", "nobody home", "nor here", "guards_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log lacks %q", want)
		}
	}
}

func TestNewGuardsRefusesNil(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a guard that is nil is taken")
		}
	}()
	executor.NewGuards(nil, &executor.Hook{}, nil)
}

func TestHook(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		hook *executor.Hook
		want schema.Decision
		args schema.JSONText
	}{
		{"empty", &executor.Hook{}, schema.Decision{}, `{"a":1}`},
		{"allow", decides("h", executor.Allow()), executor.Allow(), `{"a":1}`},
		{"block", decides("h", executor.Block("no")), schema.Decision{Action: schema.ActionDeny, Rule: "h", Text: "no"}, `{"a":1}`},
		{"without a name", decides("", executor.Block("no")), schema.Decision{Action: schema.ActionDeny, Rule: "hook", Text: "no"}, `{"a":1}`},
		{"with a rule", decides("h", schema.Decision{Action: schema.ActionDeny, Rule: "own"}), schema.Decision{Action: schema.ActionDeny, Rule: "own"}, `{"a":1}`},
		{"modify", setsArgs(`{ "a": 2.50 }`), schema.Decision{}, `{"a":2.50}`},
		{"modify into no object", setsArgs(`[1]`), schema.Decision{Action: schema.ActionInvalid, Rule: "structure", Type: schema.InvalidArguments}, `[1]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			call := turnCall("t", `{"a":1}`)
			got := tt.hook.Decide(t.Context(), call)
			if tt.want.Action == schema.ActionInvalid {
				got.Text = ""
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || call.Args != tt.args {
				t.Errorf("arguments %s, want %s: %s", call.Args, tt.args, diff)
			}
		})
	}
	if _, changed := (&executor.Hook{}).Settle(t.Context(), turnCall("t", "{}"), &schema.Result{}); changed {
		t.Error("an empty hook changed a result")
	}
}
