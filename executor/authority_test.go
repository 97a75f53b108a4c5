package executor_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

// Attacks: what is published straight to the work stream is measured against its own scopes and the worker's own
// definition of the tool, whatever else it says.
func TestD22AuthorityAtTheWorker(t *testing.T) {
	t.Parallel()
	ran := false
	run := func(context.Context) (string, error) { ran = true; return "ran", nil }
	set := quiet(t, text("read", run, executor.Effect(schema.EffectRead)), text("wipe", run))
	tests := []struct {
		name   string
		call   schema.Call
		scopes []string
		want   string // "" when it runs
	}{
		{"no scopes", schema.Call{Tool: "wipe"}, nil, ""},
		{"within", schema.Call{Tool: "read"}, []string{"tool:test/read", "effect:read", "tenant:acme"}, ""},
		{"another tool", schema.Call{Tool: "wipe"}, []string{"tool:read"}, `DENIED: the tool "wipe" is outside the authority of this run`},
		{"another queue", schema.Call{Tool: "read"}, []string{"tool:files/read"}, `DENIED: the tool "read" is outside the authority of this run`},
		{"effect that the call makes light of", schema.Call{Tool: "wipe", Effect: schema.EffectRead}, []string{"effect:read"}, `DENIED: the effect "destructive" of the tool "wipe" is outside the authority of this run`},
		{"effect that the call exaggerates", schema.Call{Tool: "read", Effect: schema.EffectDestructive}, []string{"effect:read"}, ""},
		{"another tenant", schema.Call{Tool: "read"}, []string{"tenant:other"}, "DENIED: the tenant is outside the authority of this run"},
		{"child with more than its parent", schema.Call{Tool: "wipe"}, schema.Within([]string{"tool:read"}, []string{"tool:*"}), `DENIED: the tool "wipe" is outside the authority of this run`},
		{"scope that is none", schema.Call{Tool: "read"}, []string{"root"}, `DENIED: the authority of this run holds "root", which is no scope`},
		{"unknown tool", schema.Call{Tool: "nope"}, []string{"effect:read"}, `DENIED: the effect "destructive" of the tool "nope" is outside the authority of this run`},
		{"not yet", schema.Call{Tool: "read"}, []string{"from:2999-01-01T00:00:00Z"}, "DENIED: the authority of this run is not valid now"},
		{"no longer", schema.Call{Tool: "read"}, []string{"until:2001-01-01T00:00:00Z"}, "DENIED: the authority of this run is not valid now"},
	}
	for _, tt := range tests {
		ran = false
		c := tt.call
		c.Run, c.Args, c.Principal = "r1", "{}", schema.Principal{ID: "u", Tenant: "acme", Scopes: tt.scopes}
		r, _ := set.Execute(t.Context(), &c)
		want := tt.want
		if want == "" {
			want = "ran"
		}
		if r.Output != want || ran != (tt.want == "") {
			t.Errorf("%s: got %q, ran %v; want %q", tt.name, r.Output, ran, want)
		}
	}
}

// Validity is that of the moment at which the tool would start.
func TestAuthorityEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := quiet(t, says("ok", "ran"))
		c := call("ok", "")
		c.Principal.Scopes = []string{"until:" + time.Now().Add(time.Minute).UTC().Format(time.RFC3339)}
		if got := execute(t, set, c); !got.OK {
			t.Errorf("got %+v", got)
		}
		time.Sleep(time.Minute)
		if got := execute(t, set, c); got.Type != schema.Denied {
			t.Errorf("got %+v", got)
		}
	})
}

func TestAuthorityRequired(t *testing.T) {
	t.Parallel()
	set, err := executor.Config{Queue: "test", RequireAuthority: true, Logger: slog.New(slog.DiscardHandler)}.NewSet(says("ok", "ran"))
	if err != nil {
		t.Fatal(err)
	}
	want := outcome{Type: schema.Denied, Output: "DENIED: this call states no authority, and its worker runs none without"}
	if got := execute(t, set, call("ok", "")); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	var denied *schema.Error
	if _, err := set.Call(t.Context(), "ok", ""); !errors.As(err, &denied) || denied.Type != schema.Denied {
		t.Errorf("from code: %v", err)
	}
	ctx := schema.WithScene(t.Context(), schema.Scene{Principal: schema.Principal{Scopes: []string{"tool:ok"}}})
	if out, err := set.Call(ctx, "ok", ""); out != "ran" || err != nil {
		t.Errorf("from code with authority: %q, %v", out, err)
	}
}

// A wrapper that passes on another call does not get around the authority.
func TestAuthorityOfAnotherCall(t *testing.T) {
	t.Parallel()
	reroute := func(next executor.Execute) executor.Execute {
		return func(ctx context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
			other := *c
			other.Tool = "wipe"
			return next(ctx, &other)
		}
	}
	c := call("read", "")
	c.Principal.Scopes = []string{"tool:read"}
	if got := execute(t, quiet(t, says("read", ""), says("wipe", "wiped")).With(reroute), c); got.Type != schema.Denied {
		t.Errorf("got %+v", got)
	}
}

// The wrapper is for an Execute of one's own, such as a gateway.
func TestAuthorityWrapper(t *testing.T) {
	t.Parallel()
	gateway := func(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) { return c.Done("ran"), nil }
	tool := schema.Tool{Name: "read", Queue: "files", Effect: schema.EffectRead}
	for _, tt := range []struct {
		name, tool string
		required   bool
		scopes     []string
		want       bool
	}{
		{"within", "read", true, []string{"tool:files/*", "effect:read"}, true},
		{"outside", "write", true, []string{"effect:read"}, false},
		{"none stated", "read", false, nil, true},
		{"none stated but required", "read", true, nil, false},
	} {
		c := call(tt.tool, "")
		c.Principal.Scopes = tt.scopes
		r, _ := executor.Chain(gateway, executor.Authority(tt.required, tool))(t.Context(), c)
		if r.OK != tt.want {
			t.Errorf("%s: got %+v", tt.name, outcomeOf(r))
		}
	}
}
