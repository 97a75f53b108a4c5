// Package looptest holds the in-memory seams that package loop is tested with, in real or in virtual time: a Bus
// whose tools are Go functions, a Model whose answers are a script, and checks of the event stream.
//
// It owns fakes that keep the promises of the interfaces, and the suite that says what these promises are, which the
// real bus passes too. It refuses to be a second implementation: there is no redelivery and no storage.
//
//	bus := looptest.NewBus()
//	bus.Tool(schema.Tool{Name: "ping"}, func(context.Context, *schema.Call) (string, error) { return "pong", nil })
//	model := looptest.NewModel(looptest.Calls(schema.RawCall{Name: "ping"}), looptest.Text("done"))
package looptest
