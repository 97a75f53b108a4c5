package executor

import (
	"testing"

	"github.com/jetcrew/jetcrew/schema"
)

// BenchmarkAuthority is what the worker's check of the scopes costs.
func BenchmarkAuthority(b *testing.B) {
	for name, scopes := range map[string][]string{
		"none":  nil,
		"three": {"tool:shop/*", "effect:read", "tenant:acme"},
		"child": {"tool:shop/*", "effect:read", "until:2999-01-01T00:00:00Z", "and", "tool:find_*", "tenant:acme"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			call := &schema.Call{Tool: "find_orders", Principal: schema.Principal{Tenant: "acme", Scopes: scopes}}
			for b.Loop() {
				if why := outside(call, authority{"shop", schema.EffectRead, false}); why != "" {
					b.Fatal(why)
				}
			}
		})
	}
}
