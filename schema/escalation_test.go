package schema

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// noon is the time around which the scopes of these tests begin and end.
var noon = time.Date(2030, 6, 1, 12, 0, 0, 0, time.UTC)

// drawScopes is an authority of any scopes, perhaps none, perhaps of several that must all allow.
func drawScopes(t *rapid.T, label string) []string {
	at := func(h int) string { return noon.Add(time.Duration(h) * time.Hour).Format(time.RFC3339) }
	kinds := []*rapid.Generator[string]{
		rapid.SampledFrom([]string{"tool:*", "tool:read_*", "tool:agents/*", "tool:shell/*", "tool:bash", "tool:*/bash"}),
		rapid.SampledFrom([]string{"effect:read", "effect:write", "effect:network", "effect:destructive"}),
		rapid.SampledFrom([]string{"tenant:acme", "tenant:globex"}),
		rapid.Map(rapid.IntRange(0, 9), func(n int) string { return fmt.Sprintf("spend:%d.5", n) }),
		rapid.Map(rapid.IntRange(-3, 3), func(h int) string { return "from:" + at(h) }),
		rapid.Map(rapid.IntRange(-3, 3), func(h int) string { return "until:" + at(h) }),
	}
	var scopes []string
	for i := range rapid.IntRange(0, 2).Draw(t, label+" authorities") {
		if i > 0 && len(scopes) > 0 {
			scopes = append(scopes, ScopeAnd)
		}
		scopes = append(scopes, rapid.SliceOfN(rapid.OneOf(kinds...), 1, 4).Draw(t, label)...)
	}
	return scopes
}

func drawScoped(t *rapid.T) Scoped {
	return Scoped{
		Queue:  rapid.SampledFrom([]string{"shell", "files", "agents"}).Draw(t, "queue"),
		Tool:   rapid.SampledFrom([]string{"bash", "read_file", "anna", "pay"}).Draw(t, "tool"),
		Effect: rapid.SampledFrom([]string{"", EffectRead, EffectWrite, EffectNetwork, EffectDestructive, "new"}).Draw(t, "effect"),
		Tenant: rapid.SampledFrom([]string{"", "acme", "globex"}).Draw(t, "tenant"),
	}
}

// TestD22NoScopeIsGained: down a chain of agents of which each brings any scopes of its own, nothing is allowed below that is
// not allowed above, at any time, and no more money may be spent.
func TestD22NoScopeIsGained(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c, at := drawScoped(t), noon.Add(time.Duration(rapid.IntRange(-5, 5).Draw(t, "hour"))*time.Hour)
		above := drawScopes(t, "principal")
		for depth := range rapid.IntRange(1, 4).Draw(t, "depth") {
			own := drawScopes(t, "own")
			below := Within(above, own)
			if err := CheckScopes(below); err != nil {
				t.Fatalf("depth %d: %v cannot be read: %v", depth, below, err)
			}
			allowed := Permits(below, c, at) == ""
			if want := Permits(above, c, at) == "" && Permits(own, c, at) == ""; allowed != want {
				t.Fatalf("depth %d: %+v at %v: %t; %v within %v is %v", depth, c, at, allowed, own, above, below)
			}
			limit, bounded := SpendLimit(below)
			for _, from := range [][]string{above, own} {
				if usd, ok := SpendLimit(from); ok && (!bounded || limit > usd) {
					t.Fatalf("depth %d: %v may spend %v, %v only %v", depth, below, limit, from, usd)
				}
			}
			above = below
		}
	})
}

// TestNoDepthIsGained: whatever policies the agents on the way have, each of them bounds the depth for itself, and none
// lets more than MaxDepth runs stand above one.
func TestNoDepthIsGained(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := Handoff{MaxDepth: rapid.IntRange(-3, 20).Draw(t, "maxDepth")}
		depth := rapid.IntRange(1, 30).Draw(t, "depth")
		limit := MaxDepth
		if h.MaxDepth >= 0 {
			limit = min(max(1, h.MaxDepth), MaxDepth)
		}
		if refused := h.Refuses("a", depth) != ""; refused != (depth > limit) {
			t.Fatalf("%+v at depth %d: refused %t", h, depth, refused)
		}
	})
}
