package harness

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus/bustest"
)

// natsServer is the program, built from the version that the project uses.
const natsServer = "github.com/nats-io/nats-server/v2"

// Servers is one nats-server in a process of its own, or several that are a cluster on the loopback. Each keeps its address
// and its store over restarts. They talk to each other through proxies, and tell clients nothing of one another.
type Servers struct {
	list    []*Kept
	clients []string           // where clients reach each, a host and a port
	routes  [][]*bustest.Proxy // from one to another; nil: to itself
}

// StartServers builds nats-server and starts n that end with the test. It returns when they take connections; that several have
// found each other is to be waited for by who connects.
func StartServers(t testing.TB, n int) *Servers {
	t.Helper()
	s, dir := &Servers{}, t.TempDir()
	program := filepath.Join(dir, "nats-server.exe")
	if out, err := exec.Command("go", "build", "-o", program, natsServer).CombinedOutput(); err != nil {
		t.Fatalf("build nats-server: %v\n%s", err, out)
	}
	addrs := freeAddrs(t, 2*n)
	peers := addrs[n:]
	s.clients = addrs[:n]
	for i := range n {
		args := s.args(t, i, peers)
		s.list = append(s.list, Keep(t, Command{Program: program, Dir: dir, Args: append(args, "-sd", filepath.Join(dir, fmt.Sprint("store", i)))}))
	}
	for i := range n {
		bustest.Eventually(t, fmt.Sprintf("server %d listens", i), func() bool { return s.listens(i) })
	}
	return s
}

// args are those of server i, without its store.
func (s *Servers) args(t testing.TB, i int, peers []string) []string {
	t.Helper()
	host, port, err := net.SplitHostPort(s.clients[i])
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-js", "-a", host, "-p", port}
	s.routes = append(s.routes, make([]*bustest.Proxy, len(peers)))
	if len(peers) == 1 {
		return args
	}
	var routes []string
	for j, peer := range peers {
		if j != i {
			s.routes[i][j] = bustest.StartProxy(t, peer)
			routes = append(routes, s.routes[i][j].URL())
		}
	}
	return append(args, "-n", fmt.Sprint("s", i), "--cluster_name", "test", "--cluster", "nats://"+peers[i], "--no_advertise", "--routes", strings.Join(routes, ","))
}

// freeAddrs returns addresses of this machine on which nobody listens.
func freeAddrs(t testing.TB, n int) (addrs []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() //nolint:errcheck // it only found a free port
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

// Addrs returns where clients reach each of them, a host and a port.
func (s *Servers) Addrs() []string { return s.clients }

// URL returns the addresses of all.
func (s *Servers) URL() string { return "nats://" + strings.Join(s.clients, ",nats://") }

// Processes returns the process of each.
func (s *Servers) Processes() []*Kept { return s.list }

// Restart kills server i and returns when it takes connections again, on its store.
func (s *Servers) Restart(i int) { s.End(i, os.Kill, 0) }

// End sends server i a signal by which it ends. It stays away for a while; End returns when clients can reach it again, at
// most some seconds later.
func (s *Servers) End(i int, sig os.Signal, after time.Duration) {
	begun := s.list[i].Starts()
	s.list[i].Signal(sig, after)
	late := time.NewTimer(after + 10*time.Second)
	defer late.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for s.list[i].Starts() == begun || !s.listens(i) {
		select {
		case <-late.C:
			return
		case <-look.C:
		}
	}
}

// Isolate breaks the connections between server i and the others for a while, and returns when it is over.
func (s *Servers) Isolate(i int, d time.Duration) {
	s.between(i, (*bustest.Proxy).Cut)
	time.Sleep(d)
	s.between(i, (*bustest.Proxy).Heal)
}

func (s *Servers) between(i int, do func(*bustest.Proxy)) {
	for j := range s.routes {
		if j != i {
			do(s.routes[i][j])
			do(s.routes[j][i])
		}
	}
}

func (s *Servers) listens(i int) bool {
	c, err := net.Dial("tcp", s.clients[i])
	if err == nil {
		_ = c.Close() // nothing was said
	}
	return err == nil
}
