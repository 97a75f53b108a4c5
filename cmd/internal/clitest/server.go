package clitest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// natsServer is the program, built from the version that the project uses.
const natsServer = "github.com/nats-io/nats-server/v2"

// Server is a nats-server in a process of its own. It keeps its address and its store over restarts.
type Server struct {
	t       testing.TB
	program string
	addr    string
	dir     string
	process *Process
}

// StartServer builds and starts a server that ends with the test, and returns when it takes connections.
func StartServer(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir()}
	s.program = filepath.Join(s.dir, "nats-server.exe")
	if out, err := exec.Command("go", "build", "-o", s.program, natsServer).CombinedOutput(); err != nil {
		t.Fatalf("build nats-server: %v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.launch()
	return s
}

// URL returns the server's address.
func (s *Server) URL() string { return "nats://" + s.addr }

// Restart kills the server and starts it again on its store.
func (s *Server) Restart() {
	s.t.Helper()
	s.process.Signal(os.Kill)
	s.process.Wait()
	s.launch()
}

func (s *Server) launch() {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.process = Start(s.t, Command{Program: s.program, Dir: s.dir, Args: []string{"-js", "-sd", filepath.Join(s.dir, "store"), "-a", host, "-p", port}})
	s.process.Await("Server is ready")
}
