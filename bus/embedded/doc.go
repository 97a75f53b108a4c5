// Package embedded runs a NATS server with JetStream inside the process, for a first run without a server of one's
// own and for tests.
//
// It owns the server's life and its directory. It refuses to know what is stored in it.
//
//	srv, err := embedded.Start(embedded.Config{})
//	defer srv.Stop()
//	b, err := bus.Connect(ctx, bus.Config{URL: srv.URL(), Options: srv.Options()})
package embedded
