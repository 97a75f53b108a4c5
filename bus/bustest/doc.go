// Package bustest is what tests over a bus have in common: a server, or three with every stream on each; a cluster whose nodes
// and ways can be broken, a proxy that injects faults, a server in virtual time, workers made of plain functions, and a
// checker of what must hold in the facts of every run. Processes are those of bus/bustest/harness.
//
// It owns no test of its own subject. It refuses to fake the bus: the server is a real one.
//
//	srv := bustest.Server(t)
//	bustest.Serve(t, bustest.Connect(t, srv), bus.Worker{Queue: "test", Tools: bustest.Tools{"echo": bustest.Echo}})
//
// The tests of a package that begin so, and whose TestMain is Main, run on three servers with JETCREW_NODES=3.
package bustest
