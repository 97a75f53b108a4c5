package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
)

var (
	_ loop.Guard      = (*executor.Binding)(nil)
	_ loop.Authorizer = (*executor.Binding)(nil)
)

func tenantOf(ctx context.Context, _ *schema.TurnCall) (map[string]any, error) {
	return map[string]any{"tenant": schema.SceneOf(ctx).Principal.Tenant}, nil
}

func gives(values map[string]any) executor.Values {
	return func(context.Context, *schema.TurnCall) (map[string]any, error) { return values, nil }
}

const unbound = "DENIED: what this call is bound to could not be found out, so it did not run"

func TestBind(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		members []executor.Guard
		call    schema.TurnCall
		bound   schema.JSONText
		want    string // that the model reads
	}{
		{"from the principal", []executor.Guard{executor.Bind("find*", tenantOf)}, schema.TurnCall{}, `{"tenant":"acme"}`, ""},
		{"another tool", []executor.Guard{executor.Bind("other", tenantOf)}, schema.TurnCall{}, "", ""},
		{"of a queue", []executor.Guard{executor.Bind("shop/find", tenantOf)}, schema.TurnCall{}, `{"tenant":"acme"}`, ""},
		{"of another queue", []executor.Guard{executor.Bind("web/find", tenantOf)}, schema.TurnCall{}, "", ""},
		{"by the queue's name", []executor.Guard{executor.Bind("search", tenantOf)}, schema.TurnCall{Target: "search"}, `{"tenant":"acme"}`, ""},
		{"nothing", []executor.Guard{executor.Bind("*", gives(nil))}, schema.TurnCall{}, "", ""},
		{"sorted, as it stands", []executor.Guard{executor.Bind("*", gives(map[string]any{"b": "<&>", "a": []int{1}}))}, schema.TurnCall{}, `{"a":[1],"b":"<&>"}`, ""},
		{"of two guards", []executor.Guard{executor.Bind("*", gives(map[string]any{"a": 1})), executor.Bind("*", tenantOf)}, schema.TurnCall{}, `{"a":1,"tenant":"acme"}`, ""},
		{"twice", []executor.Guard{executor.Bind("*", tenantOf), executor.Bind("*", tenantOf)}, schema.TurnCall{}, `{"tenant":"acme"}`, unbound},
		{"error", []executor.Guard{executor.Bind("*", func(context.Context, *schema.TurnCall) (map[string]any, error) {
			return nil, errors.New("vault: secret")
		})}, schema.TurnCall{}, "", unbound},
		{"panic", []executor.Guard{executor.Bind("*", func(context.Context, *schema.TurnCall) (map[string]any, error) { panic("oh") })}, schema.TurnCall{}, "", unbound},
		{"no JSON", []executor.Guard{executor.Bind("*", gives(map[string]any{"a": make(chan int)}))}, schema.TurnCall{}, "", unbound},
		{"the function changes nothing", []executor.Guard{executor.Bind("*", func(_ context.Context, c *schema.TurnCall) (map[string]any, error) {
			c.Args, c.Bound = "{}", `{"b":1}`
			return map[string]any{"a": 1}, nil
		})}, schema.TurnCall{Args: `{"q":"x"}`}, `{"a":1}`, ""},
	}
	ctx := schema.WithScene(t.Context(), schema.Scene{Run: "r1", Principal: schema.Principal{Tenant: "acme"}})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := tt.call
			c.Tool, c.Queue = "find", "shop"
			if c.Args == "" {
				c.Args = "{}"
			}
			args := c.Args
			d := guards(tt.members...).Decide(ctx, &c)
			if got := reads(d); got != tt.want || c.Bound != tt.bound || c.Args != args {
				t.Errorf("the model reads %q, want %q; bound %s, want %s; arguments %s", got, tt.want, c.Bound, tt.bound, c.Args)
			}
		})
	}
}

// An attack: the model, or what it read, names a tenant of its own.
func TestBindRefusesReservedKeys(t *testing.T) {
	t.Parallel()
	b := executor.Bind("*", gives(map[string]any{"tenant": "acme", `a"b`: 1}))
	const refused = `"tenant" is set on the server's side; leave it out`
	tests := []struct{ args, want string }{
		{`{}`, ""},
		{`{"query":"tenant"}`, ""},
		{`{"query":"\"tenant\":1,{"}`, ""},
		{`{"filter":{"tenant":"other"}}`, ""},
		{`{"filter":[{"tenant":"other"},"tenant"]}`, ""},
		{`{"tenant":"other"}`, refused},
		{`{"tenant":null}`, refused},
		{`{"a":{"b":[1,2]},"c":"\\","tenant":"other"}`, refused},
		{`{"Tenant":"other"}`, `"Tenant" is set on the server's side; leave it out`},
		{`{"a\"b":1}`, `"a\"b" is set on the server's side; leave it out`},
	}
	for _, tt := range tests {
		call := turnCall("t", tt.args)
		d := b.Decide(t.Context(), call)
		if d.Text != tt.want || tt.want != "" && (d.Action != schema.ActionInvalid || d.Type != schema.InvalidArguments) {
			t.Errorf("%s: got %+v, want %s", tt.args, d, tt.want)
		}
		edited := turnCall("t", tt.args)
		edited.Bound = `{"a\"b":1,"tenant":"acme"}`
		if d := b.Authorize(t.Context(), edited); d.Text != tt.want || edited.Bound != `{"a\"b":1,"tenant":"acme"}` {
			t.Errorf("%s, edited by a person: got %+v, want %s", tt.args, d, tt.want)
		}
	}
}

func TestBindRefusesMistakes(t *testing.T) {
	t.Parallel()
	for name, bind := range map[string]func(){
		"no function": func() { executor.Bind("*", nil) },
		"no pattern":  func() { executor.Bind(" ", tenantOf) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: taken", name)
				}
			}()
			bind()
		}()
	}
}

func TestBound(t *testing.T) {
	t.Parallel()
	type values struct {
		Tenant string `json:"tenant"`
		Limit  int    `json:"limit,omitempty"`
		Skip   string `json:"-"`
	}
	type more struct {
		values
		Region string `json:"region,omitzero"`
	}
	set := quiet(t,
		text("map", func(ctx context.Context) (string, error) {
			b := executor.Bound(ctx)
			b["seen"] = len(b)
			return asText(b), nil
		}),
		text("struct", func(ctx context.Context) (string, error) {
			var v more
			err := executor.BoundInto(ctx, &v)
			return asText(map[string]any{"tenant": v.Tenant, "limit": v.Limit, "region": v.Region}), err
		}),
		text("no struct", func(ctx context.Context) (string, error) {
			var v map[string]any
			return "", executor.BoundInto(ctx, &v)
		}))
	const needs = `DENIED: this tool runs only with a value of "tenant" that is set on the server's side`
	tests := []struct {
		tool  string
		bound schema.JSONText
		want  string
	}{
		{"map", "", `{"seen":0}`},
		{"map", `{"tenant":"acme","n":1.50}`, `{"n":1.50,"seen":2,"tenant":"acme"}`},
		{"struct", `{"tenant":"acme","other":1}`, `{"limit":0,"region":"","tenant":"acme"}`},
		{"struct", ` {"limit":3, "tenant":"acme","region":"eu"}`, `{"limit":3,"region":"eu","tenant":"acme"}`},
		{"struct", "", needs},
		{"struct", "{}", needs},
		{"struct", `{"tenant":null}`, needs},
		{"struct", `{"tenant":""}`, needs}, // of a principal without one
		{"struct", `{"tenant":5}`, `DENIED: what is bound to this call is not what its tool expects: field "values.tenant": expected a string, got number`},
		{"no struct", `{"tenant":"a"}`, "bound values: the tool reads them into something else than a struct"},
		{"map", `["a"]`, "the bound values: arguments must be an object, got array"},
		{"map", `{"a":1,"a":2}`, "the bound values: "},
	}
	for _, tt := range tests {
		c := call(tt.tool, "")
		c.Bound = tt.bound
		if got := execute(t, set, c); !strings.HasPrefix(got.Output, tt.want) {
			t.Errorf("%s %s: got %+v, want %s", tt.tool, tt.bound, got, tt.want)
		}
	}
	if got := executor.Bound(t.Context()); got == nil || len(got) != 0 {
		t.Errorf("outside a tool: %v", got)
	}
}

func asText(v map[string]any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	_ = enc.Encode(v)
	return strings.TrimSpace(b.String())
}

// What is published straight to the work stream gets no exemption.
func TestBoundKeysAtTheWorker(t *testing.T) {
	t.Parallel()
	tool, err := executor.Dynamic(schema.Tool{Name: "open", Description: "Takes anything."}, func(context.Context, map[string]any) (any, error) { return "ran", nil })
	if err != nil {
		t.Fatal(err)
	}
	c := call("open", `{ "ten\u0061nt":"other"}`)
	c.Bound = `{"tenant":"acme"}`
	want := outcome{Type: schema.InvalidArguments, Output: `"tenant" is set on the server's side; leave it out`}
	if diff := cmp.Diff(want, execute(t, quiet(t, tool), c)); diff != "" {
		t.Error(diff)
	}
}
