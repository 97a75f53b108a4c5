package executor

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// BenchmarkGuard is what the guard alone adds to a function call.
func BenchmarkGuard(b *testing.B) {
	b.ReportAllocs()
	g := &guard{grace: time.Second, log: slog.Default()}
	tool := &Tool{Run: func(context.Context, *schema.Call) (string, error) { return "ok", nil }}
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	call := &schema.Call{}
	for b.Loop() {
		if _, err := g.do(ctx, tool, call); err != nil {
			b.Fatal(err)
		}
	}
}
