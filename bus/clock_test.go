package bus_test

import (
	"net"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
)

// lines dials, and can cut the line dialled last.
type lines struct {
	mu   sync.Mutex
	last net.Conn
}

func (l *lines) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = c
	return c, err
}

func (l *lines) cut() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last.Close()
}

// TestClockIsReadAgain: after a break, and when the work stream has a new leader, another machine's clock may count.
func TestClockIsReadAgain(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	line := &lines{}
	connect(t, srv, func(c *bus.Config) { c.Options = append(c.Options, nats.SetCustomDialer(line)) })
	asked := f.listen("$JS.API.STREAM.INFO.JC_WORK")
	sample := func() {
		t.Helper()
		for range 5 {
			f.next(asked)
		}
	}
	f.say("$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.JC_WORK", []byte(`{}`))
	sample()
	if err := line.cut(); err != nil {
		t.Fatal(err)
	}
	sample()
}
