package bus_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/bus/embedded"
	"github.com/jetcrew/jetcrew/schema"
)

// behind connects through a proxy of its own.
func behind(t *testing.T, srv *embedded.Server) (*bus.Bus, *bustest.Proxy) {
	t.Helper()
	p := bustest.StartProxy(t, hostPort(srv.URL()))
	return connect(t, srv, func(c *bus.Config) { c.URL = p.URL() }), p
}

// hostPort returns the host and the port of a server's address.
func hostPort(url string) string { return strings.TrimPrefix(url, "nats://") }

// trouble is what a network does to the clients behind a proxy in about a second, and then it is well again.
func trouble(p *bustest.Proxy) {
	for _, f := range []func(){
		func() { p.Set(bustest.Fault{Delay: 20 * time.Millisecond}) },
		p.Cut,
		p.Heal,
		func() { p.Set(bustest.Fault{DropDown: true}) },
		p.Heal,
		func() { p.Set(bustest.Fault{DropUp: true}) },
	} {
		f()
		lasts(200 * time.Millisecond)
	}
	p.Heal()
}

// lasts lets a fault be there for a while: its length is the test's input, no event ends it.
func lasts(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}

// TestB12LostAnswers: a reading or a writing whose answer was lost is done again, and a fact written twice is one.
func TestB12LostAnswers(t *testing.T) {
	t.Parallel()
	srv := server(t)
	for name, lost := range map[string]bustest.Fault{"request": {DropUp: true}, "answer": {DropDown: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, proxy := behind(t, srv)
			ctx, cancel := context.WithTimeout(t.Context(), bustest.Patience)
			defer cancel()
			run := schema.NewID()
			seq, err := b.Append(ctx, run, schema.OpenKey(), &schema.Open{}, schema.Key{})
			if err != nil {
				t.Fatal(err)
			}
			proxy.Set(lost)
			read := make(chan error, 1)
			go func() {
				facts, err := b.Facts(ctx, run, seq)
				if err == nil && len(facts) < 1 {
					t.Errorf("facts %+v", facts)
				}
				read <- err
			}()
			wrote := make(chan error, 1)
			go func() {
				_, err := b.Append(ctx, run, schema.CtlKey(1), &schema.Ctl{Act: schema.CtlOwn}, schema.Key{})
				wrote <- err
			}()
			lasts(200 * time.Millisecond)
			proxy.Heal()
			if err := <-read; err != nil {
				t.Errorf("reading: %v", err)
			}
			if err := <-wrote; err != nil {
				t.Errorf("writing: %v", err)
			}
		})
	}
}
