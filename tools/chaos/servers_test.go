package chaos

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus/bustest"
)

// servers is one server, or a cluster of them.
type servers struct {
	list    []*process
	clients []string           // where clients reach each, a host and a port
	routes  [][]*bustest.Proxy // from one to another; nil: to itself
}

func (f *fleet) startServers(n int) *servers {
	f.t.Helper()
	s := &servers{}
	peers := make([]int, n)
	for i := range n {
		s.clients = append(s.clients, local(freePort(f.t)))
		peers[i] = freePort(f.t)
	}
	for i := range n {
		s.routes = append(s.routes, make([]*bustest.Proxy, n))
		var routes []string
		for j := range n {
			if j != i {
				s.routes[i][j] = bustest.StartProxy(f.t, local(peers[j]))
				routes = append(routes, s.routes[i][j].Addr())
			}
		}
		name := fmt.Sprintf("s%d", i)
		_, port, _ := net.SplitHostPort(s.clients[i])
		s.list = append(s.list, f.start("server", envDir+"="+filepath.Join(f.dir, name), envPort+"="+port,
			envName+"="+name, envPeerPort+"="+strconv.Itoa(peers[i]), envRoutes+"="+strings.Join(routes, ",")))
	}
	for i := range n {
		bustest.Eventually(f.t, "server "+strconv.Itoa(i)+" listens", func() bool { return s.listens(i) })
	}
	return s
}

// direct is the URL of all servers, for the test itself.
func (s *servers) direct() string { return "nats://" + strings.Join(s.clients, ",nats://") }

func (s *servers) listens(i int) bool {
	c, err := net.Dial("tcp", s.clients[i])
	if err == nil {
		_ = c.Close() // nothing was said
	}
	return err == nil
}

// between does something to the ways from and to server i.
func (s *servers) between(i int, do func(*bustest.Proxy)) {
	for j := range s.routes {
		if j != i {
			do(s.routes[i][j])
			do(s.routes[j][i])
		}
	}
}

// fault returns what happens to one of them. When it is over the server is back, or was given the time to come back.
func (s *servers) fault(x fault) func() {
	i := x.who % len(s.list)
	switch x.what {
	case "kill server":
		return func() { s.end(i, syscall.SIGKILL, x.lasts) }
	case "roll server":
		return func() { s.end(i, syscall.SIGTERM, x.lasts) }
	case "pause server":
		return func() { s.list[i].pause(x.lasts) }
	case "isolate server":
		return func() {
			s.between(i, (*bustest.Proxy).Cut)
			time.Sleep(x.lasts)
			s.between(i, (*bustest.Proxy).Heal)
		}
	}
	panic("fault " + x.what + " is unknown")
}

// end ends server i, which starts again after a while, and returns when clients can reach it again.
func (s *servers) end(i int, sig syscall.Signal, after time.Duration) {
	s.list[i].signal(sig, after)
	time.Sleep(after)
	for range 100 {
		if s.listens(i) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func local(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
