package bus_test

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

// skew makes a server's clock, as it shows in what the server sends and passes on, go before the client's: for the
// client that is the same as a clock of its own that goes after. What is replaced keeps its length.
type skew struct {
	net.Conn
	by time.Duration
}

var (
	serverTS     = regexp.MustCompile(`"ts":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`)
	deadlineSent = regexp.MustCompile(bus.HeaderDeadline + `: \d{13}`)
)

func (s skew) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	replace := func(re *regexp.Regexp, later func(string) string) {
		for _, at := range re.FindAllIndex(p[:n], -1) {
			copy(p[at[0]:at[1]], later(string(p[at[0]:at[1]])))
		}
	}
	replace(serverTS, func(found string) string {
		const layout = `"ts":"` + "2006-01-02T15:04:05"
		at, _ := time.Parse(layout, found)
		return at.Add(s.by).Format(layout)
	})
	replace(deadlineSent, func(found string) string {
		name := bus.HeaderDeadline + ": "
		ms, _ := strconv.ParseInt(found[len(name):], 10, 64)
		return name + strconv.FormatInt(ms+s.by.Milliseconds(), 10)
	})
	return n, err
}

func (s skew) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return skew{c, s.by}, err
}

// TestC15ClockSkew: a worker whose clock is wrong gives a call the time that its owner gave it.
func TestC15ClockSkew(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{90 * time.Second, -90 * time.Second} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			srv := server(t)
			b := connect(t, srv)
			w := connect(t, srv, func(c *bus.Config) { c.Options = append(c.Options, nats.SetCustomDialer(skew{by: by})) })
			if off := w.Now().Sub(b.Now()) - by; off.Abs() > 5*time.Second {
				t.Fatalf("the worker sees a server that is %v before it, want %v", by+off, by)
			}
			left := func(ctx context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
				deadline, _ := ctx.Deadline()
				return c.Done(fmt.Sprint(int(time.Until(deadline).Seconds()))), nil
			}
			hang := func(ctx context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
				<-ctx.Done()
				return c.Fail(schema.Timeout, "the worker says so"), nil
			}
			serve(t, w, bus.Worker{Queue: "test", Slots: 2, Tools: toolbox{"left": left, "hang" + runOnce: hang}})
			r, err := b.Dispatch(t.Context(), call("r", "left", 0), "test", 30*time.Second)
			if n, _ := strconv.Atoi(r.Output); err != nil || n < 20 || n > 30 {
				t.Errorf("%+v, %v; want nearly 30 s", r, err)
			}
			began := time.Now()
			r, err = b.Dispatch(t.Context(), call("r", "hang"+runOnce, 1), "test", time.Second)
			if err != nil || r.OK || r.Error.Type != schema.Timeout || time.Since(began) > patience {
				t.Errorf("after %v: %+v, %v", time.Since(began), r, err)
			}
		})
	}
}
