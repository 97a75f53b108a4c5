// Package bus is Jetcrew over NATS JetStream: it publishes calls on the work stream, serves the queues of tool
// workers, keeps the journal of facts, and knows which workers are alive.
//
// It owns subjects, headers, streams, consumers, the server's clock, connecting and healing, and the protocol that
// gives every call exactly one recorded result. It refuses to know what an agent is: what it carries are the values
// of package schema.
//
// A worker with one tool:
//
//	b, err := bus.Connect(ctx, bus.Config{URL: "nats://127.0.0.1:4222"})
//	...
//	err = b.Serve(ctx, bus.Worker{Queue: "files", Slots: 4, Tools: set})
package bus
