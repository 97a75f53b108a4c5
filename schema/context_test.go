package schema

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScene(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(Scene{}, SceneOf(t.Context())); diff != "" {
		t.Error(diff)
	}
	outer := Scene{Run: "r1", Agent: "a", Environment: "production", Principal: Principal{ID: "u", Tenant: "acme", Scopes: []string{"tool:*"}}, Depth: 1}
	ctx := WithScene(t.Context(), outer)
	inner := WithScene(ctx, Scene{Run: "r2"})
	if diff := cmp.Diff(outer, SceneOf(ctx)); diff != "" {
		t.Error(diff)
	}
	if got := SceneOf(inner); got.Run != "r2" || got.Principal.ID != "" {
		t.Errorf("the inner scene is %+v", got)
	}
}
