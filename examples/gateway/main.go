// Command gateway shows the model definitions of its own and has their calls run by another system, over HTTP: GATEWAY_URL
// gets the arguments of a call, its body is the result.
//
//	GATEWAY_URL=http://127.0.0.1:8080/tools OPENAI_API_KEY=... go run ./examples/gateway "Where is order 17?"
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/jetcrew/jetcrew/examples/internal/desk"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

var definitions = []schema.Tool{{
	Name: "order_status", Description: "Say where an order is.", Idempotent: true, Effect: schema.EffectRead, TimeoutMS: 10_000,
	Parameters: `{"type":"object","properties":{"id":{"type":"string","description":"Number of the order"}},"required":["id"]}`,
}}

// maxBody bounds an answer of the gateway, in bytes.
const maxBody = 1 << 20

// gateway runs calls at base. It is an executor: every call comes here, validated against its definition.
func gateway(base string) executor.Execute {
	return func(ctx context.Context, call *schema.Call) (schema.Result, *schema.Pending) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/"+url.PathEscape(call.Tool), strings.NewReader(string(call.Args)))
		if err != nil {
			return call.Fail(schema.ToolFailed, err.Error()), nil
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", executor.Key(ctx))
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return call.Fail(schema.ToolFailed, "the gateway cannot be reached"), nil
		}
		defer res.Body.Close()
		body, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
		if err != nil || res.StatusCode != http.StatusOK {
			return call.Failf(schema.ToolFailed, "the gateway answers with status %d", res.StatusCode), nil
		}
		return call.Done(string(body)), nil
	}
}

func main() {
	ctx := context.Background()
	tools, err := executor.Wiring{Schemas: definitions, Executor: gateway(os.Getenv("GATEWAY_URL"))}.Build(ctx)
	check(err)
	answer, err := desk.Ask(ctx, tools, strings.Join(os.Args[1:], " "))
	check(err)
	fmt.Println(answer)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
