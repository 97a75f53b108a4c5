package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/embedded"
)

// Options say what to open. The zero Options are an embedded server in a temporary directory without workers.
type Options struct {
	URL      string       // server to use; empty: an embedded one
	Creds    string       // path of a credentials file for URL
	Dir      string       // where the embedded server keeps its data; empty: a temporary directory
	Prefix   string       // of the bus; default bus.DefaultPrefix
	Instance string       // id of this process start; default a fresh one
	Fleet    []Member     // workers of an embedded server; with URL they are not started
	Logger   *slog.Logger // default slog.Default()
	Verbose  bool         // pass on what the workers write to standard error, and have them write more
}

// Member is a kind of worker process.
type Member struct {
	Count int      // how many processes; default 1
	Args  []string // what follows "worker" on the command line, such as serve --queue files=2
}

// Session is an open bus with what belongs to it. Close ends it.
type Session struct {
	Bus   *bus.Bus
	Fleet *Fleet // the session's own worker processes; more can be started, also with a server of the user's own

	server *embedded.Server
	once   sync.Once
}

// Open connects to the server of opts, or starts an embedded one and its workers, and returns when each worker is in
// the catalog. ctx bounds the opening only. What failed to start is said with the last lines of its output.
func Open(ctx context.Context, opts Options) (*Session, error) {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	s := &Session{}
	if err := s.open(ctx, opts); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Session) open(ctx context.Context, opts Options) (err error) {
	cfg := bus.Config{URL: opts.URL, Prefix: opts.Prefix, Instance: opts.Instance, Logger: opts.Logger}
	if opts.Creds != "" {
		cfg.Options = append(cfg.Options, nats.UserCredentials(opts.Creds))
	}
	own := opts.URL == ""
	if own {
		// Without a token every user of this machine could have commands run by the workers.
		if s.server, err = embedded.Start(embedded.Config{Dir: opts.Dir, Token: rand.Text()}); err != nil {
			return err
		}
		cfg.URL, cfg.Options = s.server.URL(), s.server.Options()
	}
	if s.Bus, err = bus.Connect(ctx, cfg); err != nil {
		if !own {
			err = fmt.Errorf("%w; is a NATS server with JetStream running there? --nats or NATS_URL names it", err)
		}
		return err
	}
	if s.Fleet, err = newFleet(s.Bus, cfg.URL, opts); err != nil {
		return err
	}
	if !own {
		return nil
	}
	return s.Fleet.startAll(ctx, opts.Fleet)
}

// URL returns the address of the session's own server for other processes on this machine; who knows it may do
// everything. Empty: the server is the user's.
func (s *Session) URL() string {
	if s.server == nil {
		return ""
	}
	return s.server.URL()
}

// Close drains the workers, kills those that take too long, and ends the bus and the embedded server. It is safe to
// call twice.
func (s *Session) Close() {
	s.once.Do(func() {
		if s.Fleet != nil {
			s.Fleet.close()
		}
		if s.Bus != nil {
			s.Bus.Close()
		}
		if s.server != nil {
			s.server.Stop()
		}
	})
}

// executable returns the path of this program, which its workers run too.
func executable() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the program to start workers with: %w", err)
	}
	return path, nil
}
