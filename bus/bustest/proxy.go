package bustest

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// Fault is what a Proxy does to the connections that it lets through. The zero Fault does nothing.
type Fault struct {
	Delay    time.Duration // before each piece of up to 32 KiB is passed on, in both directions
	Rate     int           // bytes per second and direction of a connection; 0: as fast as it goes
	DropUp   bool          // what goes to the server is swallowed while the connection looks fine
	DropDown bool          // the same for what comes from the server; with DropUp the connection is half-open
}

// Proxy passes TCP connections on to a server and does to them what networks do. It listens on 127.0.0.1, ends with
// the test, and is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	open     sync.WaitGroup

	mu     sync.Mutex
	target string // empty: nobody is there
	fault  Fault
	cut    bool
	closed bool
	links  map[*link]struct{}
}

// StartProxy starts a Proxy for the server at target, a host and a port.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := listen(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

func listen(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, target: target, links: map[*link]struct{}{}}
	p.open.Go(p.accept)
	return p, nil
}

// Addr returns where the proxy listens, a host and a port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// URL returns the address for clients.
func (p *Proxy) URL() string { return "nats://" + p.Addr() }

// Set does f to all connections from now on.
func (p *Proxy) Set(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// Cut ends all connections and lets nobody through until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	p.endLinks(func(*link) bool { return true })
}

// Heal ends every fault. Connections that lost bytes end too: nothing that would follow could be understood.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut, p.fault = false, Fault{}
	p.endLinks(func(l *link) bool { return l.lossy })
}

// Lossy tells whether a connection has lost bytes. Heal would end it.
func (p *Proxy) Lossy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if l.lossy {
			return true
		}
	}
	return false
}

// retarget passes new connections on to another server.
func (p *Proxy) retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

func (p *Proxy) close() {
	_ = p.listener.Close() // nothing depends on how it ends
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Cut()
	p.open.Wait()
}

// endLinks ends the connections that meet the condition. mu is held.
func (p *Proxy) endLinks(which func(*link) bool) {
	for l := range p.links {
		if which(l) {
			l.end()
		}
	}
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			p.open.Go(func() { p.connect(c) })
		}
	}
}

// connect passes one client on until either side ends.
func (p *Proxy) connect(client net.Conn) {
	defer client.Close() //nolint:errcheck // a connection that ends has nothing more to say
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	if target == "" {
		return
	}
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	l := &link{client: client, server: server, over: make(chan struct{})}
	defer l.end()
	if !p.add(l) {
		return
	}
	defer p.remove(l)
	var down sync.WaitGroup
	down.Go(func() { p.pass(l, server, client, false) })
	p.pass(l, client, server, true)
	down.Wait()
}

func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut || p.closed {
		return false
	}
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// pass copies one direction until it breaks.
func (p *Proxy) pass(l *link, from, to net.Conn, up bool) {
	defer l.end()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		wait, dropped := p.suffer(l, n, up)
		if !l.wait(wait) {
			return
		}
		if dropped {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// suffer returns how long n bytes are held back and whether they are swallowed.
func (p *Proxy) suffer(l *link, n int, up bool) (wait time.Duration, dropped bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait = p.fault.Delay
	if p.fault.Rate > 0 {
		wait += time.Duration(n) * time.Second / time.Duration(p.fault.Rate)
	}
	dropped = up && p.fault.DropUp || !up && p.fault.DropDown
	l.lossy = l.lossy || dropped
	return wait, dropped
}

// link is one connection through a proxy.
type link struct {
	client, server net.Conn
	lossy          bool // guarded by Proxy.mu
	over           chan struct{}
	once           sync.Once
}

func (l *link) end() {
	l.once.Do(func() {
		close(l.over)
		_ = l.client.Close() // ending is all that is wanted
		_ = l.server.Close()
	})
}

// wait holds a piece back; false: the connection ended meanwhile.
func (l *link) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-l.over:
		return false
	case <-t.C:
		return true
	}
}
