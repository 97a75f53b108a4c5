package bustest

import (
	"context"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/bus/embedded"
)

// EnvNodes is the variable that says on how many servers the tests are to run that start theirs by Server: 1, the
// default, or 3.
const EnvNodes = "JETCREW_NODES"

// Servers is where the bus of one test is: a server of its own, or an account of its own on three that are a cluster,
// with every stream on each of them. It is safe for concurrent use.
type Servers struct {
	nodes []string // addresses for clients
	next  atomic.Uint32
	known func(subject string) bool // all of them know that somebody listens to a subject; nil: the one does
	local []nats.Option             // of who connects in this process
}

// Server starts what EnvNodes says. It ends with the test; three servers are shared by the tests of a package, whose
// TestMain calls Main.
func Server(t testing.TB) *Servers {
	t.Helper()
	switch n := os.Getenv(EnvNodes); n {
	case "", "1":
		srv, err := embedded.Start(embedded.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(srv.Stop)
		return At(srv.URL())
	case "3":
		return onCluster(t)
	default:
		t.Fatalf("%s=%s: want 1 or 3", EnvNodes, n)
		return nil
	}
}

// At names servers that the test has started itself, by their addresses, with commas between them.
func At(urls string) *Servers { return &Servers{nodes: strings.Split(urls, ",")} }

// onCluster has an account on the shared cluster. Its streams end with the test, so that they cost the next one nothing.
func onCluster(t testing.TB) *Servers {
	t.Helper()
	s, err := shared.account()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.clear(); err != nil {
			t.Logf("streams are left on the cluster: %v", err)
		}
	})
	return s
}

// URL returns the addresses of all, each time beginning with another one.
func (s *Servers) URL() string {
	i := int(s.next.Add(1)) % len(s.nodes)
	return strings.Join(slices.Concat(s.nodes[i:], s.nodes[:i]), ",")
}

// Options returns what who connects in this process needs beside the URL: each time it begins with another address.
func (s *Servers) Options() []nats.Option { return append(s.local, nats.DontRandomize()) }

// Replicas returns how many copies a stream has.
func (s *Servers) Replicas() int { return len(s.nodes) }

// Behind starts a Proxy in front of one of them, and returns the address for clients who know nothing else.
func (s *Servers) Behind(t testing.TB) (p *Proxy, address string) {
	t.Helper()
	first, _, _ := strings.Cut(s.URL(), ",")
	u, err := url.Parse(first)
	if err != nil {
		t.Fatal(err)
	}
	p = StartProxy(t, u.Host)
	u.Host = p.Addr()
	return p, u.String()
}

// Heard waits until each of them knows what nc has subscribed to: at once only the server of nc does, and what is published
// elsewhere until then is not heard.
func (s *Servers) Heard(t testing.TB, nc *nats.Conn) {
	t.Helper()
	if s.known == nil {
		return
	}
	last, err := nc.SubscribeSync(nats.NewInbox()) // they learn of subscriptions in their order
	if err != nil {
		t.Fatal(err)
	}
	Eventually(t, "all servers know of a subscription", func() bool { return s.known(last.Subject) })
	if err := last.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
}

// clear deletes every stream.
func (s *Servers) clear() error {
	nc, err := nats.Connect(s.URL(), s.Options()...)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	list := js.StreamNames(ctx)
	for name := range list.Name() {
		if err := js.DeleteStream(ctx, name); err != nil {
			return err
		}
	}
	return list.Err()
}
