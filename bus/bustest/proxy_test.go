package bustest_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jetcrew/jetcrew/bus/bustest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echoServer sends back what it reads, until the test ends.
func echoServer(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer c.Close() //nolint:errcheck // the test looks at the other end
				_, _ = io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		open.Wait()
	})
	return l.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// echoed sends n bytes and reads them back; within bounds the wait for them.
func echoed(c net.Conn, n int, within time.Duration) error {
	var sent sync.WaitGroup
	defer sent.Wait()
	sent.Go(func() { _, _ = c.Write(make([]byte, n)) })
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, n))
	return err
}

func TestProxy(t *testing.T) {
	t.Parallel()
	const short = 50 * time.Millisecond
	for name, tt := range map[string]struct {
		fault  func(*bustest.Proxy)
		bytes  int
		within time.Duration
		broken bool          // the connection that was there does not work
		least  time.Duration // that an exchange takes
	}{
		"nothing":   {func(*bustest.Proxy) {}, 1 << 20, bustest.Patience, false, 0},
		"cut":       {(*bustest.Proxy).Cut, 1, bustest.Patience, true, 0},
		"delay":     {func(p *bustest.Proxy) { p.Set(bustest.Fault{Delay: short}) }, 1, bustest.Patience, false, 2 * short},
		"throttle":  {func(p *bustest.Proxy) { p.Set(bustest.Fault{Rate: 100 << 10}) }, 10 << 10, bustest.Patience, false, 200 * time.Millisecond},
		"drop up":   {func(p *bustest.Proxy) { p.Set(bustest.Fault{DropUp: true}) }, 1, short, true, short},
		"drop down": {func(p *bustest.Proxy) { p.Set(bustest.Fault{DropDown: true}) }, 1, short, true, short},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := bustest.StartProxy(t, echoServer(t))
			c := dial(t, p.Addr())
			if err := echoed(c, 1, bustest.Patience); err != nil {
				t.Fatal(err)
			}
			tt.fault(p)
			began := time.Now()
			err := echoed(c, tt.bytes, tt.within)
			if took := time.Since(began); took < tt.least {
				t.Errorf("took %v, want at least %v", took, tt.least)
			}
			if (err != nil) != tt.broken {
				t.Errorf("ends with %v, want an error: %t", err, tt.broken)
			}
			p.Heal()
			if tt.broken && echoed(c, 1, bustest.Patience) == nil {
				t.Error("the connection that lost bytes goes on")
			}
			if err := echoed(dial(t, p.Addr()), 1, bustest.Patience); err != nil {
				t.Errorf("after healing: %v", err)
			}
		})
	}
}
