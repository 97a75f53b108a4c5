package rules_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

func TestConditions(t *testing.T) {
	t.Parallel()
	call := schema.TurnCall{
		Tool: "shown", Target: "own", Queue: "orders", Source: "github", Effect: "odd",
		Args: `{"n":3,"big":9007199254740993,"x":2.5,"e":1e3,"s":"straße","list":[1,2],"o":{"k":null},"yes":true,
			"huge":123456789012345678901,"deep":{"n":7,"huge":123456789012345678901}}`,
	}
	ctx := schema.WithScene(context.Background(), schema.Scene{Principal: schema.Principal{ID: "ada", Tenant: "acme"}})
	for _, when := range []string{
		`tool == "own" && queue == "orders" && source == "github" && effect == "destructive" && environment == "test"`,
		`principal.id == "ada" && principal["tenant"] == "acme"`,
		`args.n == 3 && type(args.n) == int`,
		`args.big == 9007199254740993`,
		`args.x > 2 && type(args.x) == double`,
		`args.e == 1000`,
		`args.huge > 9223372036854775807 && type(args.huge) == double && args.deep.n == 7 && type(args.deep.n) == int && args.deep.huge > 1`,
		`args.s.startsWith("stra") && args.s.matches("^[a-zß]+$") && size(args.s) == 6`,
		`args.list.exists(i, i > 1) && 2 in args.list`,
		`args.o.k == null && !has(args.o.z) && has(args.n)`,
		`args.yes`,
		`!has(args.zzz)`,
		`"n" in args && !("z" in args) && size(args) == 10 && args.exists(k, k == "yes") && args == args`,
		`args["s"] == "straße" && args.o.size() == 1`,
		`type(args) == map`,
		`[1, 2, 3, 4, 5, 6, 7, 8, 9].all(i, args.n == 3 && args.deep.n == 7) && args.x == 2.5 && !has(args.zzz)`,
	} {
		r := compile(t, &schema.Governance{Environment: "test", Filters: []schema.FilterRule{{When: when, Action: schema.ActionDeny, Text: "yes"}}})
		if d := r.Decide(ctx, &call); d.Action != schema.ActionDeny || d.Text != "yes" {
			t.Errorf("%s: %+v", when, d)
		}
		r = compile(t, &schema.Governance{Environment: "test", Filters: []schema.FilterRule{{When: "!(" + when + ")", Action: schema.ActionDeny}}})
		if d := r.Decide(ctx, &call); d.Action != "" {
			t.Errorf("not %s: %+v", when, d)
		}
	}
}

// TestConditionFailsClosed has conditions that cannot be evaluated for a call.
func TestConditionFailsClosed(t *testing.T) {
	t.Parallel()
	for _, broken := range []struct{ when, args, why string }{
		{`args.missing == 1`, `{}`, "no such key: missing"},
		{`args.s > 1`, `{"s":"x"}`, "no such overload"},
		{`args.s`, `{"s":"true"}`, "neither true nor false"},
		{`1 / args.n == 1`, `{"n":0}`, "division by zero"},
		{`args.n == 1`, `{"n":1e9999}`, "the number is too large"},
		{`args.o.n == 1`, `{"o":{"n":1e9999}}`, ""},
		{`args.n == 1`, `{"n":`, "the arguments are no JSON object"},
		{`args.n == 1`, `null`, "the arguments are no JSON object"},
		{`args.l.all(a, args.l.all(b, args.l.all(c, a + b + c >= 0)))`, `{"l":[` + strings.Repeat("1,", 99) + `1]}`, "cost"},
	} {
		filter := func(a schema.Action) *schema.Governance {
			return &schema.Governance{Filters: []schema.FilterRule{{When: broken.when, Action: a, Text: "Text."}}, Policy: &schema.Policy{Default: schema.ActionAsk}}
		}
		policy := func(a, fallback schema.Action) *schema.Governance {
			return &schema.Governance{Policy: &schema.Policy{Default: fallback, Rules: []schema.PolicyRule{{When: broken.when, Action: a, Text: "Text."}}}}
		}
		for _, tt := range []struct {
			name  string
			rules *schema.Governance
			want  schema.Action
			says  bool
		}{
			{"filter allow", filter(schema.ActionAllow), schema.ActionAsk, false},
			{"filter deny", filter(schema.ActionDeny), schema.ActionDeny, true},
			{"filter guide", filter(schema.ActionGuide), schema.ActionGuide, true},
			{"filter redirect", filter(schema.ActionRedirect), schema.ActionRedirect, true},
			{"policy allow", policy(schema.ActionAllow, schema.ActionDeny), schema.ActionDeny, false},
			{"policy ask", policy(schema.ActionAsk, ""), schema.ActionAsk, true},
			{"policy deny", policy(schema.ActionDeny, ""), schema.ActionDeny, true},
		} {
			d := decide(compile(t, tt.rules), "t", schema.JSONText(broken.args))
			if outcome(d) != tt.want {
				t.Errorf("%s, %s: %+v, want %s", broken.when, tt.name, d, tt.want)
			}
			if tt.says && !(strings.HasPrefix(d.Text, "Text. (the condition of this rule could not be evaluated: ") && strings.Contains(d.Text, broken.why)) {
				t.Errorf("%s, %s: %q does not say %q", broken.when, tt.name, d.Text, broken.why)
			}
		}
	}
}

// TestConditionIsBoundedInTime compares maps with long lists in a loop, which costs little as CEL counts.
func TestConditionIsBoundedInTime(t *testing.T) {
	t.Parallel()
	r := compile(t, &schema.Governance{Filters: []schema.FilterRule{{When: "args.l.all(a, args.o == args.o)", Action: schema.ActionDeny}}})
	ones := strings.Repeat("1,", 8_000)
	done := make(chan schema.Decision, 1)
	go func() { done <- decide(r, "t", schema.JSONText(`{"l":[`+ones+`1],"o":{"k":[`+ones+`1]}}`)) }()
	select {
	case d := <-done:
		if !strings.Contains(d.Text, "deadline exceeded") {
			t.Errorf("%+v", d)
		}
	case <-time.After(time.Minute):
		t.Error("it goes on and on")
	}
}

func TestConditionIsNotEvaluatedForOtherTools(t *testing.T) {
	t.Parallel()
	r := compile(t, &schema.Governance{Filters: []schema.FilterRule{{Tools: []string{"refund"}, When: "args.amount > 1", Action: schema.ActionDeny}}})
	if d := decide(r, "ls", "{}"); d.Action != "" {
		t.Errorf("%+v", d)
	}
}

func TestRulesAreSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	r := compile(t, &schema.Governance{
		Tools:   []schema.ToolSetting{{Ref: "*", Bind: `{"tenant":"${principal.tenant}"}`}},
		Filters: []schema.FilterRule{{When: `args.n % 2 == 1 || args.s.matches("^no")`, Action: schema.ActionDeny}},
	})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			tenant := fmt.Sprintf("t%d", g)
			ctx := schema.WithScene(context.Background(), schema.Scene{Principal: schema.Principal{Tenant: tenant}})
			for n := range 200 {
				c := schema.TurnCall{Tool: "t", Queue: "q", Args: schema.JSONText(fmt.Sprintf(`{"n":%d,"s":"yes"}`, n))}
				d := r.Decide(ctx, &c)
				odd := n%2 == 1
				if (d.Action == schema.ActionDeny) != odd || !odd && c.Bound != schema.JSONText(`{"tenant":"`+tenant+`"}`) {
					t.Errorf("%d: %+v, bound %s", n, d, c.Bound)
					return
				}
			}
		})
	}
	wg.Wait()
}
