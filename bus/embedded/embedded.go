package embedded

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const readyWithin = 10 * time.Second

// Config says how the server runs.
type Config struct {
	Dir    string // where JetStream keeps its files, for one server at a time; empty: a temporary directory that Stop removes
	Port   int    // port on 127.0.0.1 for other processes; 0: a free one
	Silent bool   // do not listen at all: only this process reaches the server
	Token  string // what clients must know to connect; empty: everybody on this machine may
	Peer   Peer   // place in a cluster of servers; zero: none, the server is alone
}

// Peer is a server's place in a cluster. A server that begins with an empty directory takes clients only when it has met
// the others.
type Peer struct {
	Name   string   // of this server, unlike those of the others; the same at every start with the same directory
	Port   int      // port on 127.0.0.1 for the other servers
	Routes []string // where the other servers are, a host and a port each
}

// Server is a running server. Stop ends it.
type Server struct {
	srv     *server.Server
	token   string
	temp    string // to be removed
	address string // file to be removed
	lock    *os.File
	once    sync.Once
}

// Start runs a server and returns when it takes connections.
func Start(cfg Config) (*Server, error) {
	s := &Server{token: cfg.Token}
	if cfg.Dir == "" {
		dir, err := os.MkdirTemp("", "jetcrew-")
		if err != nil {
			return nil, fmt.Errorf("start embedded server: %w", err)
		}
		cfg.Dir, s.temp = dir, dir
	}
	var err error
	if s.lock, err = lock(cfg.Dir); err != nil {
		s.clean()
		return nil, fmt.Errorf("start embedded server in %s: %w", cfg.Dir, err)
	}
	port := cfg.Port
	if port == 0 {
		port = server.RANDOM_PORT
	}
	opts := &server.Options{
		ServerName: "jetcrew-embedded", Host: "127.0.0.1", Port: port, DontListen: cfg.Silent,
		JetStream: true, StoreDir: cfg.Dir, NoSigs: true, NoLog: true, MaxPayload: 1 << 20,
		Authorization: cfg.Token,
	}
	cfg.Peer.join(opts)
	srv, err := server.NewServer(opts)
	if err != nil {
		s.clean()
		return nil, fmt.Errorf("start embedded server in %s: %w", cfg.Dir, err)
	}
	s.srv = srv
	srv.Start()
	if !srv.ReadyForConnections(readyWithin) {
		s.Stop()
		return nil, fmt.Errorf("start embedded server in %s: not ready within %v; is the port in use?", cfg.Dir, readyWithin)
	}
	if !srv.JetStreamEnabled() {
		s.Stop()
		return nil, errors.New("start embedded server: JetStream is not enabled")
	}
	if s.temp == "" {
		if err := s.publish(cfg.Dir, cfg.Silent); err != nil {
			s.Stop()
			return nil, fmt.Errorf("start embedded server in %s: %w", cfg.Dir, err)
		}
	}
	return s, nil
}

// join makes a server one of a cluster. It tells nobody of the other servers: clients know those that they were given.
func (p Peer) join(opts *server.Options) {
	if p.Name == "" {
		return
	}
	opts.ServerName = p.Name
	opts.Cluster = server.ClusterOpts{Name: "jetcrew", Host: "127.0.0.1", Port: p.Port, NoAdvertise: true}
	for _, addr := range p.Routes {
		opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats", Host: addr})
	}
}

// URL returns the address for other processes on this machine, with the token if there is one.
func (s *Server) URL() string {
	u := s.srv.ClientURL()
	if s.token == "" {
		return u
	}
	scheme, host, _ := strings.Cut(u, "://")
	return scheme + "://" + url.PathEscape(s.token) + "@" + host
}

// Options returns what connects this process without a socket.
func (s *Server) Options() []nats.Option {
	opts := []nats.Option{nats.InProcessServer(s.srv)}
	if s.token != "" {
		opts = append(opts, nats.Token(s.token))
	}
	return opts
}

// Stop ends the server and removes a temporary directory. It is safe to call twice.
func (s *Server) Stop() {
	s.once.Do(func() {
		s.hide()
		s.srv.Shutdown()
		s.srv.WaitForShutdown()
		s.clean()
	})
}

// hide takes back where the server is, while nobody else has the lock and before the server ends: who reads it would go to
// one that does not answer any more.
func (s *Server) hide() {
	if s.address != "" {
		_ = os.Remove(s.address) // one that stays behind says nothing once the lock is free
	}
}

func (s *Server) clean() {
	if s.lock != nil {
		_ = s.lock.Close() // nothing was written to it
	}
	if s.temp != "" {
		_ = os.RemoveAll(s.temp) // it is under the system's temporary directory, which somebody else cleans too
	}
}
