package bustest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// accounts is how many tests of one package may have one on the shared cluster.
const accounts = 300

// shared is the cluster of the tests of this process: starting one for each would take longer than they do.
var shared sharedCluster

type sharedCluster struct {
	mu      sync.Mutex
	cluster *Cluster
	dir     string
	used    int // accounts
}

// Main is the TestMain of a package that uses Server: it runs the tests and ends the process.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run runs the tests, ends what they share, and returns the code with which the process is to end: not zero, too, when a
// goroutine is left.
func Run(m *testing.M) int {
	code := m.Run()
	shared.end()
	if code != 0 {
		return code
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// account returns one that nobody has used.
func (s *sharedCluster) account() (*Servers, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.start(); err != nil {
		return nil, err
	}
	if s.used == accounts {
		return nil, errors.New("no account is left on the cluster that tests share")
	}
	name := fmt.Sprintf("a%d", s.used)
	s.used++
	where := &Servers{known: func(subject string) bool { return s.known(name, subject) }}
	for _, nd := range s.cluster.nodes {
		where.nodes = append(where.nodes, fmt.Sprintf("nats://%s:%s@%s", name, name, nd.srv.Addr()))
	}
	return where, nil
}

func (s *sharedCluster) known(account, subject string) bool {
	for _, nd := range s.cluster.nodes {
		acc, err := nd.srv.LookupAccount(account)
		if err != nil || acc.Interest(subject) == 0 {
			return false
		}
	}
	return true
}

// start starts the cluster if it does not run yet. mu is held.
func (s *sharedCluster) start() (err error) {
	if s.cluster != nil {
		return nil
	}
	if s.dir, err = os.MkdirTemp("", "jetcrew-test-"); err != nil {
		return err
	}
	var list strings.Builder
	for i := range accounts {
		fmt.Fprintf(&list, "a%d { jetstream: enabled, users: [{user: a%d, password: a%d}] }\n", i, i, i)
	}
	s.cluster, err = newCluster(s.dir, 3, "accounts {\n"+list.String()+"}")
	return err
}

func (s *sharedCluster) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster != nil {
		s.cluster.end()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir) // under the temporary directory, which somebody else cleans too
	}
}
