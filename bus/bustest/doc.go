// Package bustest is what tests over a bus have in common: a server, a cluster of servers, a proxy that injects faults,
// workers made of plain functions, and a checker of what must hold in the facts of every run.
//
// It owns no test of its own subject. It refuses to fake the bus: the server is a real one.
//
//	srv := bustest.Server(t)
//	bustest.Serve(t, bustest.Connect(t, srv), bus.Worker{Queue: "test", Tools: bustest.Tools{"echo": bustest.Echo}})
package bustest
