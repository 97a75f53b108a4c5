package executor_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

// TestWrappersHideNothing: under all wrappers at once a retrieval tool reports its progress, is in the caller's trace,
// knows its call, and its hits keep their sources (seed-notes, weak point 12).
func TestWrappersHideNothing(t *testing.T) {
	t.Parallel()
	inTrace := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	set := knowledge(t, executor.KnowledgeConfig{Dataset: "kb", Search: func(ctx context.Context, q executor.KnowledgeQuery) ([]executor.Hit, error) {
		schema.Progress(ctx, "asking "+q.Dataset)
		if !trace.SpanContextFromContext(ctx).Equal(inTrace) {
			t.Error("the search is not in the caller's trace")
		}
		if executor.Key(ctx) != "r1/2.3" || executor.CallOf(ctx).Principal.Tenant != "acme" {
			t.Errorf("key %q, call %+v", executor.Key(ctx), executor.CallOf(ctx))
		}
		return hits(1), nil
	}})
	limit, err := executor.RateLimit("knowledge_search", 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	set = set.With(executor.Authority(true, set.Tools()...), executor.NewListening(&ear{}).Wrap, limit)

	var said []string
	ctx := schema.WithProgress(trace.ContextWithSpanContext(t.Context(), inTrace), func(text string) { said = append(said, text) })
	c := search("acme", `{"query":"returns"}`)
	c.Principal.ID, c.Principal.Scopes = "ann", []string{"tool:*"}
	result, pending := set.Execute(ctx, c)
	if pending != nil || result.Output != `{"hits":[{"source":"doc1","text":"text"}]}` {
		t.Errorf("result %+v, %v", result, pending)
	}
	if diff := cmp.Diff([]string{"asking kb"}, said); diff != "" {
		t.Error(diff)
	}
}
