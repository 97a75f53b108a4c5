package executor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

// decideAll shows what the model reads of each call, or with which bound values it runs.
func decideAll(ctx context.Context, guard executor.Guard, calls ...schema.TurnCall) {
	for _, call := range calls {
		decision := guard.Decide(ctx, &call)
		if result, stopped := decision.Outcome(&schema.Call{Tool: call.Tool}); stopped && decision.Action != "" {
			fmt.Println(result.Output)
			continue
		}
		fmt.Println(strings.TrimSpace(fmt.Sprint("runs ", call.Tool, " ", call.Args, " ", call.Bound)))
	}
}

func ExampleFilter() {
	filter := executor.NewFilter(func(_ context.Context, call *schema.TurnCall) schema.Decision {
		switch call.Tool {
		case "file_write":
			return executor.Block("this agent only reads")
		case "serpapi":
			return executor.Fallback("brave_search finds the same.")
		}
		return executor.Allow()
	})
	calls := []schema.TurnCall{{Tool: "file_write", Args: "{}"}, {Tool: "serpapi", Args: "{}"}, {Tool: "file_read", Args: "{}"}}
	decideAll(context.Background(), filter, calls...)

	// Another one, while runs go on; a condition is enough to allow and to block.
	filter.Replace(executor.Predicate(func(tool string, args map[string]any) bool {
		return strings.HasPrefix(tool, "file_") && args["path"] != "/etc/shadow"
	}))
	decideAll(context.Background(), filter, calls[1], schema.TurnCall{Tool: "file_read", Args: `{"path":"/etc/shadow"}`})
	// Output:
	// DENIED: this agent only reads
	// REDIRECT: brave_search finds the same. Use the alternative.
	// runs file_read {}
	// DENIED: this agent may not make this call
	// DENIED: this agent may not make this call
}

func ExampleHook() {
	keys := &executor.Hook{
		Name: "keys",
		Before: func(_ context.Context, call *schema.TurnCall) schema.Decision {
			if strings.Contains(string(call.Args), "sk-") {
				return executor.Guide("Do not send keys to tools.")
			}
			return executor.Allow()
		},
		After: func(_ context.Context, _ *schema.TurnCall, result *schema.Result) (string, bool) {
			if strings.Contains(result.Output, "sk-") {
				return executor.Withhold("the output holds a key")
			}
			return "", false
		},
	}
	call := schema.TurnCall{Tool: "bash", Args: `{"command":"env"}`}
	decideAll(context.Background(), keys, call, schema.TurnCall{Tool: "bash", Args: `{"command":"login sk-123"}`})
	view, changed := keys.Settle(context.Background(), &call, &schema.Result{OK: true, Output: "API_KEY=sk-123"})
	fmt.Println(changed, view)
	// Output:
	// runs bash {"command":"env"}
	// GUIDANCE: Do not send keys to tools. Adjust the parameters and retry.
	// true DENIED: the output holds a key
}

func ExampleBind() {
	tenant := executor.Bind("find_*", func(ctx context.Context, _ *schema.TurnCall) (map[string]any, error) {
		return map[string]any{"tenant": schema.SceneOf(ctx).Principal.Tenant}, nil
	})
	ctx := schema.WithScene(context.Background(), schema.Scene{Principal: schema.Principal{ID: "ann", Tenant: "acme"}})
	decideAll(ctx, tenant,
		schema.TurnCall{Tool: "find_orders", Args: `{"state":"open"}`},
		schema.TurnCall{Tool: "find_orders", Args: `{"state":"open","tenant":"other"}`})
	// Output:
	// runs find_orders {"state":"open"} {"tenant":"acme"}
	// TOOL_ERROR: {"errorType":"InvalidArguments","error":"\"tenant\" is set on the server's side; leave it out","tool":"find_orders","callId":""}
}

type ordersIn struct {
	State string `json:"state"`
}

type boundValues struct {
	Tenant string `json:"tenant"`
}

func findOrders(ctx context.Context, in ordersIn) (string, error) {
	var bound boundValues
	if err := executor.BoundInto(ctx, &bound); err != nil {
		return "", err // nothing is searched for nobody
	}
	return in.State + " orders of " + bound.Tenant, nil
}

func ExampleBoundInto() {
	set, err := executor.NewSet("shop", executor.Func("find_orders", "Finds orders.", findOrders))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, bound := range []schema.JSONText{`{"tenant":"acme"}`, ""} {
		result, _ := set.Execute(context.Background(), &schema.Call{Run: "r1", Turn: 1, Tool: "find_orders", Args: `{"state":"open"}`, Bound: bound})
		fmt.Println(result.Output)
	}
	// Output:
	// open orders of acme
	// DENIED: this tool runs only with a value of "tenant" that is set on the server's side
}

func ExampleNewGuards() {
	guards := executor.NewGuards(slog.New(slog.DiscardHandler), // of panics
		&executor.Hook{Name: "audit", Before: func(context.Context, *schema.TurnCall) schema.Decision {
			return schema.Decision{Action: schema.ActionAsk, Text: "is this one fine?"}
		}},
		executor.NewFilter(executor.Predicate(func(tool string, _ map[string]any) bool { return tool != "rm" })),
		&executor.Hook{Name: "broken", Before: func(_ context.Context, call *schema.TurnCall) schema.Decision {
			if call.Tool == "mv" {
				panic("no connection to the policy")
			}
			return executor.Allow()
		}})
	for _, tool := range []string{"ls", "rm", "mv"} {
		decision := guards.Decide(context.Background(), &schema.TurnCall{Tool: tool, Args: "{}"})
		fmt.Println(tool, decision.Action, "by", decision.Rule)
	}
	// Output:
	// ls ask by audit
	// rm deny by filter
	// mv deny by guard_panic
}

// meter is a listener that prints.
type meter struct{}

func (meter) Start(_ context.Context, call *schema.Call) { fmt.Println("start", call.Tool) }

func (meter) Complete(_ context.Context, call *schema.Call, result schema.Result, took time.Duration) {
	fmt.Println("complete", call.Tool, result.OK, took < time.Minute)
}

func ExampleListening() {
	set, err := executor.NewSet("shop", executor.Func("find_orders", "Finds orders.", findOrders))
	if err != nil {
		fmt.Println(err)
		return
	}
	listening := executor.NewListening(executor.Listeners{meter{}}) // Replace gives the place to another
	set = set.With(listening.Wrap)
	set.Execute(context.Background(), &schema.Call{Run: "r1", Turn: 1, Tool: "find_orders", Args: `{"state":"open"}`})
	// Output:
	// start find_orders
	// complete find_orders false true
}

func ExampleConfig_requireAuthority() {
	config := executor.Config{Queue: "shop", RequireAuthority: true}
	set, err := config.NewSet(
		executor.Func("list", "Lists.", func(context.Context, struct{}) (string, error) { return "3 orders", nil }, executor.Effect(schema.EffectRead)),
		executor.Func("wipe", "Deletes.", func(context.Context, struct{}) (string, error) { return "all gone", nil }))
	if err != nil {
		fmt.Println(err)
		return
	}
	reader := schema.Principal{ID: "ann", Scopes: []string{"tool:shop/*", "effect:read"}}
	for _, call := range []schema.Call{{Tool: "list", Principal: reader}, {Tool: "wipe", Principal: reader}, {Tool: "list"}} {
		result, _ := set.Execute(context.Background(), &call)
		fmt.Println(result.Output)
	}
	// Output:
	// 3 orders
	// DENIED: the effect "destructive" of the tool "wipe" is outside the authority of this run
	// DENIED: this call states no authority, and its worker runs none without
}

func ExampleRateLimit() {
	limit, err := executor.RateLimit("list", 0.1, 1) // one call, then one every 10 s
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := executor.NewSet("shop", executor.Func("list", "Lists.", func(context.Context, struct{}) (string, error) { return "3 orders", nil }))
	if err != nil {
		fmt.Println(err)
		return
	}
	set = set.With(limit)
	for range 2 {
		result, _ := set.Execute(context.Background(), &schema.Call{Tool: "list"})
		fmt.Println(result.OK, result.Error != nil && result.Error.Type == schema.RateLimited)
	}
	// Output:
	// true false
	// false true
}

func ExampleAbort() {
	errFrozen := errors.New("the account is frozen")
	set, err := executor.NewSet("bank", executor.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) {
		return "", executor.Abort(errFrozen)
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	result, _ := set.Execute(context.Background(), &schema.Call{Tool: "pay"})
	fmt.Println(result.Aborts, result.Error.Message)
	_, err = set.Call(context.Background(), "pay", "")
	fmt.Println(errors.Is(err, errFrozen))
	// Output:
	// true the account is frozen
	// true
}

func ExampleKnowledge() {
	search := func(_ context.Context, query executor.KnowledgeQuery) ([]executor.Hit, error) {
		text := fmt.Sprintf("%d hits for %q of %v", query.TopK, query.Text, query.Filter["tenant"])
		return []executor.Hit{{Source: query.Dataset + "/returns.md", Text: text}}, nil
	}
	tool, err := executor.Knowledge(executor.KnowledgeConfig{Dataset: "handbook", Search: search})
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := executor.NewSet("knowledge", tool)
	if err != nil {
		fmt.Println(err)
		return
	}
	ann := schema.Principal{ID: "ann", Tenant: "acme"}
	for _, args := range []schema.JSONText{`{"query":"may I return it?"}`, `{"query":"all","tenant":"other"}`} {
		result, _ := set.Execute(context.Background(), &schema.Call{Tool: "knowledge_search", Principal: ann, Args: args})
		fmt.Println(result.OK, result.Output)
	}
	// Output:
	// true {"hits":[{"source":"handbook/returns.md","text":"5 hits for \"may I return it?\" of acme"}]}
	// false TOOL_ERROR: {"errorType":"InvalidArguments","error":"unknown property \"tenant\", expected \"query\"","tool":"knowledge_search","callId":""}
}
