package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sourcegraph/conc"

	"github.com/jetcrew/jetcrew/schema"
)

// ErrClosed is the error of a server that was closed.
var ErrClosed = errors.New("the connection to the MCP server is closed")

// Server is one MCP server. When its session has ended, because the process died or the server forgot it, the next call,
// and the next reading of its tools, begins another one. It is safe for concurrent use. Close ends it.
type Server struct {
	cfg     Config
	client  *sdk.Client
	changed chan struct{} // buffered 1
	connect chan struct{} // buffered 1: held by who connects

	life  context.Context // ends with Close, and calls under way with it
	stop  context.CancelCauseFunc
	tasks conc.WaitGroup

	mu      sync.Mutex
	session *session // nil: there is none
	closed  bool
	once    sync.Once
}

// session is a connection that has shaken hands.
type session struct {
	*sdk.ClientSession
	end func() // after the session: ends the process, if there is one
}

// Connect connects to a server. ctx bounds only that: the session goes on after ctx has ended.
func Connect(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg.withDefaults(), changed: make(chan struct{}, 1), connect: make(chan struct{}, 1)}
	s.life, s.stop = context.WithCancelCause(context.Background())
	s.client = sdk.NewClient(&sdk.Implementation{Name: "jetcrew", Version: "1"}, &sdk.ClientOptions{
		Logger:                 s.cfg.Logger,
		Capabilities:           &sdk.ClientCapabilities{},                  // no roots, nothing that a server may ask for
		MultiRoundTrip:         &sdk.MultiRoundTripOptions{Disabled: true}, // it sends a call again
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { s.poke() },
	})
	if _, err := s.live(ctx); err != nil {
		_ = s.Close() // nothing is open
		return nil, fmt.Errorf("connect MCP server %q: %w", s.cfg.Name, err)
	}
	return s, nil
}

// Name returns the name of the server.
func (s *Server) Name() string { return s.cfg.Name }

// Changed receives when Tools may give others than before: the server said so, or its session ended.
func (s *Server) Changed() <-chan struct{} { return s.changed }

func (s *Server) poke() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Close ends the session and the process. Calls under way end with an error. It returns within seconds, and may be
// called twice.
func (s *Server) Close() error {
	s.once.Do(func() {
		s.mu.Lock()
		s.closed = true
		last := s.session
		s.mu.Unlock()
		s.stop(ErrClosed)
		if last != nil {
			last.close()
		}
		s.tasks.Wait()
	})
	return nil
}

// close ends the session in either order: a server that hears nobody any more may hold its end up.
func (c *session) close() {
	var both conc.WaitGroup
	both.Go(func() { _ = c.Close() }) // it is over in any case
	both.Go(c.end)
	both.Wait()
}

// live returns the session, or begins one.
func (s *Server) live(ctx context.Context) (*session, error) {
	if c, err := s.current(); c != nil || err != nil {
		return c, err
	}
	select {
	case s.connect <- struct{}{}:
		defer func() { <-s.connect }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if c, err := s.current(); c != nil || err != nil {
		return c, err // somebody else was faster
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Start)
	defer cancel()
	c, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	return c, s.keep(c)
}

func (s *Server) current() (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	return s.session, nil
}

// begin connects and shakes hands. The session does not end with ctx.
func (s *Server) begin(ctx context.Context) (*session, error) {
	transport, end, err := s.transport()
	if err != nil {
		return nil, err
	}
	// Whatever the session keeps of its context must not end when the time for connecting is over.
	lasting, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, giveUp)
	stopped := context.AfterFunc(s.life, giveUp)
	cs, err := s.client.Connect(lasting, transport, nil)
	stopped()
	if !stop() || err != nil {
		giveUp()
		if cs != nil {
			_ = cs.Close()
		}
		end()
		return nil, errors.Join(err, context.Cause(ctx))
	}
	return &session{ClientSession: cs, end: end}, nil
}

// keep makes c the session until it ends.
func (s *Server) keep(c *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.close()
		return ErrClosed
	}
	s.session = c
	s.tasks.Go(func() {
		err := c.Wait()
		s.lose(c)
		if s.life.Err() == nil {
			s.cfg.Logger.Warn("session of an MCP server ended", "error", schema.Cut(fmt.Sprint(err), 512))
		}
		c.end()
	})
	return nil
}

// task starts f on a goroutine that Close waits for, unless the server is closed.
func (s *Server) task(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.tasks.Go(f)
	}
}

// lose forgets a session that is of no use any more.
func (s *Server) lose(c *session) {
	s.mu.Lock()
	lost := s.session == c
	if lost {
		s.session = nil
	}
	s.mu.Unlock()
	if lost {
		s.poke()
	}
}

// within bounds what the server does beside calls.
func (s *Server) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return s.alive(ctx, s.cfg.Start)
}

// alive returns a context that ends with ctx, with the server, and after d if d is not 0.
func (s *Server) alive(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.life, func() { cancel(context.Cause(s.life)) })
	end := func() {
		stop()
		cancel(nil)
	}
	if d == 0 {
		return ctx, end
	}
	bound, late := context.WithTimeout(ctx, d)
	return bound, func() {
		late()
		end()
	}
}
