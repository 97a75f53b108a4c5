package rules_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/jetcrew/jetcrew/executor/rules"
	"github.com/jetcrew/jetcrew/schema"
)

func TestBind(t *testing.T) {
	t.Parallel()
	ada := schema.Scene{Run: "r-1", Agent: "helper", Principal: schema.Principal{ID: "ada", Tenant: `ac"me <é>`}}
	for _, tt := range []struct {
		name               string
		bind, args, before schema.JSONText
		scene              schema.Scene
		bound              schema.JSONText
		action             schema.Action
		text               string
	}{
		{name: "fixed", bind: ` { "root" : "/srv", "n": 1.50 } `, args: `{"q":1}`, bound: `{"root":"/srv","n":1.50}`},
		{
			name: "variables", bind: `{"f":{"tenant":"${principal.tenant}","by":["${agent}/${run}",true]},"id":"<${principal.id}>"}`, args: `{}`, scene: ada,
			bound: `{"f":{"tenant":"ac\"me <é>","by":["helper/r-1",true]},"id":"<ada>"}`,
		},
		{name: "no variable", bind: `{"a":"$${run} $$${run}","b":"$1 $$ {x}"}`, args: `{}`, bound: `{"a":"${run} $${run}","b":"$1 $$ {x}"}`},
		{name: "nothing", bind: `{}`, args: `{}`},
		{name: "beside another guard's", bind: `{"a":1}`, args: `{}`, before: `{"b":2}`, bound: `{"b":2,"a":1}`},
		{name: "bound twice", bind: `{"a":1}`, args: `{}`, before: `{"a":2}`, bound: `{"a":2}`, action: schema.ActionDeny, text: `"a" is bound already`},
		{name: "no tenant", bind: `{"tenant":"${principal.tenant}"}`, args: `{}`, action: schema.ActionDeny, text: "the tool needs principal.tenant, and this run has none"},
		{name: "reserved", bind: `{"tenant":"x"}`, args: `{"a":[{"tenant":1}],"tenant":"y"}`, action: schema.ActionInvalid, text: `"tenant" is set by the system; leave it out`},
		{name: "reserved, escaped", bind: `{"tenant":"x"}`, args: `{ "\u0074enant" : 1 }`, action: schema.ActionInvalid, text: `"tenant" is set by the system; leave it out`},
		{name: "deeper is not reserved", bind: `{"tenant":"x"}`, args: `{"a":{"tenant":1},"b":["tenant"],"c":"tenant"}`, bound: `{"tenant":"x"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := compile(t, &schema.Governance{Tools: []schema.ToolSetting{{Ref: "other", Bind: `{"no":1}`}, {Ref: "q/*", Bind: tt.bind}, {Ref: "*", Bind: `{"late":1}`}}})
			c := schema.TurnCall{Tool: "t", Queue: "q", Args: tt.args, Bound: tt.before}
			d := r.Decide(schema.WithScene(context.Background(), tt.scene), &c)
			if d.Action != tt.action || d.Text != tt.text || c.Bound != tt.bound {
				t.Errorf("%+v, bound %s", d, c.Bound)
			}
			if tt.action == schema.ActionInvalid && (d.Type != schema.InvalidArguments || d.Rule != "tools[1].bind") {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestBindOfCallsThatAsk(t *testing.T) {
	t.Parallel()
	r := compile(t, &schema.Governance{Tools: []schema.ToolSetting{{Ref: "*", Approval: schema.ApproveAlways, Bind: `{"k":1}`}}})
	c := schema.TurnCall{Tool: "t", Queue: "q", Args: "{}"}
	if d := r.Decide(context.Background(), &c); d.Action != schema.ActionAsk || c.Bound != `{"k":1}` {
		t.Errorf("%+v, bound %s", d, c.Bound)
	}
	c = schema.TurnCall{Tool: "t", Queue: "q", Args: `{"k":2}`}
	if d := r.Decide(context.Background(), &c); d.Action != schema.ActionInvalid || c.Bound != "" {
		t.Errorf("a person would be asked about it: %+v", d)
	}
}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	r := compile(t, &schema.Governance{
		Tools:   []schema.ToolSetting{{Ref: "*", Bind: `{"k":1}`}},
		Filters: []schema.FilterRule{{When: "args.n > 10", Action: schema.ActionGuide, Text: "Less."}},
		Policy: &schema.Policy{Rules: []schema.PolicyRule{
			{Name: "all", Action: schema.ActionAsk}, {Name: "much", When: "args.n > 5", Action: schema.ActionAsk}, {When: "args.n < 0", Action: schema.ActionDeny},
		}},
	})
	for args, want := range map[schema.JSONText]struct {
		action schema.Action
		rule   string
	}{
		`{"n":1}`:       {schema.ActionAsk, "all"},
		`{"n":6}`:       {schema.ActionAsk, "all, much"},
		`{"n":11}`:      {schema.ActionGuide, "filters[0]"},
		`{"n":-1}`:      {schema.ActionDeny, "policy.rules[2]"},
		`{"n":1,"k":2}`: {schema.ActionInvalid, "tools[0].bind"},
	} {
		c := schema.TurnCall{Tool: "t", Queue: "q", Args: args, Bound: `{"k":1}`}
		if d := r.Authorize(context.Background(), &c); d.Action != want.action || d.Rule != want.rule || c.Bound != `{"k":1}` {
			t.Errorf("%s: %+v, bound %s", args, d, c.Bound)
		}
	}
}

// TestBoundTextIsCanonical binds any text and reads it back.
func TestBoundTextIsCanonical(t *testing.T) {
	t.Parallel()
	r := compile(t, &schema.Governance{Tools: []schema.ToolSetting{{Ref: "*", Bind: `{"a":"-${principal.id}-","b":"${run}"}`}}})
	rapid.Check(t, func(t *rapid.T) {
		id, run := rapid.StringN(1, -1, -1).Draw(t, "id"), rapid.StringN(1, -1, -1).Draw(t, "run")
		c := schema.TurnCall{Tool: "t", Queue: "q", Args: "{}"}
		r.Decide(schema.WithScene(context.Background(), schema.Scene{Run: run, Principal: schema.Principal{ID: id}}), &c)
		canonical, _, bad := schema.Canonical(string(c.Bound))
		var got struct{ A, B string }
		if err := json.Unmarshal([]byte(c.Bound), &got); err != nil || bad != nil || canonical != c.Bound || got.A != "-"+id+"-" || got.B != run {
			t.Fatalf("bound %s of %q and %q: %v", c.Bound, id, run, err)
		}
	})
}

// Names that differ in nothing but their case are one name to a tool written in Go, which would get either value.
func TestBindTwins(t *testing.T) {
	t.Parallel()
	_, err := rules.Compile(&schema.Governance{Tools: []schema.ToolSetting{{Ref: "find", Bind: `{"tenant":"${principal.tenant}","Tenant":"all"}`}}})
	var got rules.Problems
	if !errors.As(err, &got) || len(got) != 1 || got[0].Code != rules.CodeBind || got[0].Path != "tools[0].bind" {
		t.Errorf("%v", err)
	}
}
