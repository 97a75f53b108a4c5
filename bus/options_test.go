package bus_test

import (
	"log/slog"
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

// TestBreakThatNobodyHasHeardOf: a connection that is there again counts as broken until the bus was told of the break.
func TestBreakThatNobodyHasHeardOf(t *testing.T) {
	t.Parallel()
	srv, open := newRestartable(t), make(chan struct{})
	b := connect(t, srv.at(), func(c *bus.Config) {
		c.Logger = slog.New(onLine{slog.DiscardHandler, "bus disconnected", func() { <-open }})
	})
	srv.restart(func() { bustest.Eventually(t, "the server is missed", func() bool { return !b.Connected() }) })
	bustest.Eventually(t, "the server is back", b.Connected)
	if b.Unbroken() {
		t.Error("unbroken, though nothing was heard of the break")
	}
	close(open)
	bustest.Eventually(t, "the bus knows that the server is back", b.Unbroken)
}
