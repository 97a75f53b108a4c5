package bus_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
)

// TestOwnHandlers: options of a user's own do not keep the bus from hearing of its connection.
func TestOwnHandlers(t *testing.T) {
	t.Parallel()
	srv := newRestartable(t)
	b := connect(t, srv.at(), func(c *bus.Config) {
		c.Options = append(c.Options, nats.ReconnectHandler(func(*nats.Conn) {}), nats.DisconnectErrHandler(func(*nats.Conn, error) {}))
	})
	srv.restart(func() { bustest.Eventually(t, "the server is missed", func() bool { return !b.Connected() }) })
	bustest.Eventually(t, "the bus knows that the server is back", b.Unbroken)
}
