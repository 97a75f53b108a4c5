// Command names gives an agent some tools by their names: functions of its own, of which it gets one, and a toolkit. All
// of them run in this process, on the bus only the facts of the run are kept.
//
//	OPENAI_API_KEY=... go run ./examples/names "Where is order 17?"
//
// Set NATS_URL to keep the facts on a server; without it there is one in this process, which forgets them.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/jetcrew/jetcrew/examples/internal/desk"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/executor/toolkit"
	"github.com/jetcrew/jetcrew/schema"
)

// shop has two methods that could be tools, and one that nobody lists.
type shop struct{}

type order struct {
	ID string `json:"id" jsonschema:"description=Number of the order"`
}

func (shop) OrderStatus(_ context.Context, o order) (string, error) {
	return fmt.Sprintf("order %s is on its way", o.ID), nil
}

func (shop) CancelOrder(_ context.Context, o order) (string, error) {
	return fmt.Sprintf("order %s is cancelled", o.ID), nil
}

func (shop) DropDatabase(context.Context, struct{}) (string, error) { panic("never") }

func main() {
	ctx := context.Background()
	methods, err := executor.Methods(shop{}, map[string]executor.Method{
		"OrderStatus": {Description: "Say where an order is.", Options: []executor.Option{executor.Idempotent(), executor.Effect(schema.EffectRead)}},
		"CancelOrder": {Description: "Cancel an order."},
	})
	check(err)
	tools, err := executor.Wiring{
		Names:    []string{"order_status", "read_file"}, // what the model sees, and all that may run
		Tools:    methods,
		Toolkits: []string{toolkit.FilesName},
		Table:    toolkit.Table("."),
	}.Build(ctx)
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
