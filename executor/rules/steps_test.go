package rules_test

import (
	"context"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

var drawFilter = rapid.Custom(func(t *rapid.T) schema.FilterRule {
	return schema.FilterRule{
		Tools:  rapid.SampledFrom([][]string{nil, {"a"}, {"q/*"}}).Draw(t, "tools"),
		When:   rapid.SampledFrom([]string{"", yes, no, broken}).Draw(t, "when"),
		Action: rapid.SampledFrom([]schema.Action{schema.ActionAllow, schema.ActionDeny, schema.ActionGuide, schema.ActionRedirect}).Draw(t, "action"),
		Text:   "text",
	}
})

// TestStepsDecideAsOne: the steps one after another come to what the rules come to, and so does what is asked again.
func TestStepsDecideAsOne(t *testing.T) {
	t.Parallel()
	ctx := schema.WithScene(context.Background(), schema.Scene{Principal: schema.Principal{ID: "ada", Tenant: "acme"}})
	rapid.Check(t, func(t *rapid.T) {
		g := drawGovernance.Draw(t, "governance")
		g.Filters = rapid.SliceOfN(drawFilter, 0, 2).Draw(t, "filters")
		g.Tools[0].Bind = rapid.SampledFrom([]schema.JSONText{"", `{"tenant":"${principal.tenant}"}`}).Draw(t, "bind")
		whole := drawCall.Draw(t, "call")
		whole.Args = rapid.SampledFrom([]schema.JSONText{"{}", `{"tenant":"other"}`}).Draw(t, "args")
		split := whole

		r := compile(t, g)
		filters, policy, binds := r.Steps()
		steps := executor.NewGuards(nil, filters, policy, binds)
		one, three := r.Decide(ctx, &whole), steps.Decide(ctx, &split)
		if one.Ends() { // what a call that does not run is bound to says nothing
			whole.Bound, split.Bound = "", ""
		}
		if !reflect.DeepEqual(one, three) || !reflect.DeepEqual(whole, split) {
			t.Fatalf("%+v and %+v, want %+v and %+v", three, split, one, whole)
		}
		if one, three := executor.NewGuards(nil, r).Authorize(ctx, &whole), steps.Authorize(ctx, &split); !reflect.DeepEqual(one, three) {
			t.Fatalf("asked again: %+v, want %+v", three, one)
		}
	})
}
