package bustest

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// account is where servers without accounts keep everybody.
const account = "$G"

// Cluster is a cluster of servers with JetStream in this process. Every connection to a node and between two nodes
// goes through a Proxy, so that each can be broken and each node keeps its address over restarts. A client knows only
// the nodes that it was told. Its methods are for one goroutine, that of the test.
type Cluster struct {
	t     testing.TB
	nodes []*node
}

type node struct {
	opts    server.Options
	srv     *server.Server // nil: stopped
	clients *Proxy
	routes  []*Proxy // from this node to the others; nil: to itself
}

// StartCluster starts a cluster of n servers, at least two, that ends with the test. It returns when JetStream works.
func StartCluster(t testing.TB, n int) *Cluster {
	t.Helper()
	c, err := newCluster(t.TempDir(), n, "")
	if c != nil {
		c.t = t
		t.Cleanup(c.end)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newCluster starts a cluster of n servers with further settings, as in a configuration file. Whatever it returns beside
// an error is to be ended, too.
func newCluster(dir string, n int, settings string) (*Cluster, error) {
	c := &Cluster{}
	for i := range n {
		name := fmt.Sprintf("n%d", i)
		nd := &node{routes: make([]*Proxy, n), opts: server.Options{
			ServerName: name, Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, MaxPayload: 1 << 20,
			JetStream: true, StoreDir: filepath.Join(dir, name), LameDuckDuration: time.Second, LameDuckGracePeriod: 10 * time.Millisecond,
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: server.RANDOM_PORT, NoAdvertise: true, PoolSize: -1},
		}}
		c.nodes = append(c.nodes, nd)
		if settings != "" {
			if err := nd.opts.ProcessConfigString(settings); err != nil {
				return c, fmt.Errorf("settings of the servers: %w", err)
			}
		}
		if err := nd.proxies(i); err != nil {
			return c, err
		}
	}
	for i := range c.nodes {
		if err := c.launch(i); err != nil {
			return c, err
		}
	}
	return c, c.awaitReady()
}

// proxies starts the proxies of node i.
func (nd *node) proxies(i int) (err error) {
	if nd.clients, err = listen(""); err != nil {
		return err
	}
	for j := range nd.routes {
		if j == i {
			continue
		}
		if nd.routes[j], err = listen(""); err != nil {
			return err
		}
		nd.opts.Routes = append(nd.opts.Routes, &url.URL{Scheme: "nats", Host: nd.routes[j].Addr()})
	}
	return nil
}

// end stops every node and every proxy.
func (c *Cluster) end() {
	for i, nd := range c.nodes {
		c.Stop(i)
		for _, p := range append(nd.routes, nd.clients) {
			if p != nil {
				p.close()
			}
		}
	}
}

// URL returns the addresses of the given nodes for clients; of all when none is given.
func (c *Cluster) URL(nodes ...int) string {
	var urls []string
	for i, nd := range c.nodes {
		if len(nodes) == 0 || slices.Contains(nodes, i) {
			urls = append(urls, nd.clients.URL())
		}
	}
	return strings.Join(urls, ",")
}

// Proxy returns the proxy through which clients reach a node.
func (c *Cluster) Proxy(i int) *Proxy { return c.nodes[i].clients }

// Stop ends a node as an operator does: it gives up what it leads first. Its store stays.
func (c *Cluster) Stop(i int) {
	if nd := c.nodes[i]; nd.srv != nil {
		nd.srv.Shutdown()
		nd.srv.WaitForShutdown()
		nd.srv = nil
	}
}

// LameDuck ends a node in lame duck mode: it takes no new clients, gives up what it leads, then sends clients away.
func (c *Cluster) LameDuck(i int) {
	c.nodes[i].srv.LameDuckShutdown()
	c.Stop(i)
}

// Start starts a stopped node again, on its old store, and returns when the cluster has it back.
func (c *Cluster) Start(i int) {
	c.t.Helper()
	if err := errors.Join(c.launch(i), c.awaitReady()); err != nil {
		c.t.Fatal(err)
	}
}

// Isolate breaks every connection between a node and the others: for them it is dead, without a farewell. Its clients
// stay with it.
func (c *Cluster) Isolate(i int) { c.between(i, (*Proxy).Cut) }

// Rejoin ends Isolate and Lag. It does not wait for the node to catch up.
func (c *Cluster) Rejoin(i int) { c.between(i, (*Proxy).Heal) }

// Lag delays what a node and the others say to each other, until Rejoin: the node is behind.
func (c *Cluster) Lag(i int, d time.Duration) {
	c.between(i, func(p *Proxy) { p.Set(Fault{Delay: d}) })
}

func (c *Cluster) between(i int, do func(*Proxy)) {
	for j, other := range c.nodes {
		if j != i {
			do(other.routes[i])
			do(c.nodes[i].routes[j])
		}
	}
}

// Leader returns the node that leads a stream, or a consumer of it when one is named; -1: none that this process sees.
func (c *Cluster) Leader(stream, consumer string) int {
	for i, nd := range c.nodes {
		if nd.srv != nil && (consumer == "" && nd.srv.JetStreamIsStreamLeader(account, stream) ||
			consumer != "" && nd.srv.JetStreamIsConsumerLeader(account, stream, consumer)) {
			return i
		}
	}
	return -1
}

// StepDown has the leader of a stream, or of a consumer of it when one is named, hand over to another node. Without a
// leader it does nothing.
func (c *Cluster) StepDown(stream, consumer string) {
	c.t.Helper()
	i := c.Leader(stream, consumer)
	if i < 0 {
		return
	}
	var err error
	if consumer == "" {
		err = c.nodes[i].srv.JetStreamStepdownStream(account, stream)
	} else {
		err = c.nodes[i].srv.JetStreamStepdownConsumer(account, stream, consumer)
	}
	if err != nil {
		c.t.Errorf("step down of %s %s: %v", stream, consumer, err)
	}
}

func (c *Cluster) launch(i int) error {
	nd := c.nodes[i]
	opts := nd.opts
	srv, err := server.NewServer(&opts)
	if err != nil {
		return err
	}
	srv.Start()
	nd.srv = srv
	// Routes first: a node takes clients only when it has met the others.
	if err := await("the node listens for routes", func() bool { return srv.ClusterAddr() != nil }); err != nil {
		return err
	}
	for j, other := range c.nodes {
		if j != i {
			other.routes[i].retarget(srv.ClusterAddr().String())
		}
	}
	if err := await("the node listens for clients", func() bool { return srv.Addr() != nil }); err != nil {
		return err
	}
	nd.clients.retarget(srv.Addr().String())
	return nil
}

// awaitReady waits until one of the running nodes leads JetStream, knows the others, and they follow it.
func (c *Cluster) awaitReady() error {
	return await("the cluster is ready", func() bool {
		running, known := 0, 0
		for _, nd := range c.nodes {
			switch {
			case nd.srv == nil:
				continue
			case !nd.srv.JetStreamIsCurrent():
				return false
			case nd.srv.JetStreamIsLeader():
				known = len(nd.srv.JetStreamClusterPeers())
			}
			running++
		}
		return known == running
	})
}
