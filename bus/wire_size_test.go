package bus_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

const mib = 1 << 20

// sizes around the server's limit of 1 MiB.
var sizes = []struct {
	name  string
	bytes int
}{
	{"0.99 MiB", mib * 99 / 100}, {"1.00 MiB", mib}, {"1.01 MiB", mib * 101 / 100}, {"40 MiB", 40 * mib},
}

// unbroken fails the test when the connection of a bus is lost before the test ends.
func unbroken(t *testing.T) func(*bus.Config) {
	var ending atomic.Bool
	t.Cleanup(func() { ending.Store(true) })
	return func(c *bus.Config) {
		c.Options = append(c.Options, nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if !ending.Load() && err != nil {
				t.Errorf("connection lost: %v", err)
			}
		}))
	}
}

// TestB15Sizes: what is too large for a message is a result that says so. The connection never drops, and calls beside
// it do not notice.
func TestB15Sizes(t *testing.T) {
	t.Parallel()
	srv := server(t)
	keep := unbroken(t)
	b, w := connect(t, srv, keep), connect(t, srv, keep)
	large := func(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
		return c.Done(strings.Repeat("x", sizes[c.Index%len(sizes)].bytes)), nil
	}
	failing := func(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
		return c.Fail(schema.ToolFailed, strings.Repeat("x", sizes[c.Index%len(sizes)].bytes)), nil
	}
	serve(t, w, bus.Worker{Queue: "test", Slots: 8, Tools: toolbox{
		"echo": echo, "echo" + runOnce: echo, "large": large, "large" + runOnce: large, "failing": failing,
	}})
	stop := beside(t, b)
	for i, size := range sizes {
		args := schema.JSONText(`{"x":"` + strings.Repeat("x", size.bytes-8) + `"}`)
		for _, tool := range []string{"echo", "echo" + runOnce} {
			c := call(schema.NewID(), tool, i)
			c.Args = args
			expectTooLarge(t, b, "arguments of "+size.name, c)
		}
		for _, tool := range []string{"large", "large" + runOnce, "failing"} {
			expectTooLarge(t, b, tool+" of "+size.name, call(schema.NewID(), tool, i))
		}
	}
	stop()
}

func expectTooLarge(t *testing.T, b *bus.Bus, what string, c *schema.Call) {
	t.Helper()
	r, err := b.Dispatch(t.Context(), c, "test", patience)
	if err != nil || r.OK || r.Error.Type != schema.TooLarge || len(r.Output) > 8<<10 {
		t.Errorf("%s: %.200v, %v", what, r, err)
	}
}

// beside dispatches small calls one after another until it is stopped.
func beside(t *testing.T, b *bus.Bus) (stop func()) {
	t.Helper()
	end := make(chan struct{})
	var wg sync.WaitGroup
	run := schema.NewID()
	wg.Go(func() {
		for i := 0; ; i++ {
			r, err := b.Dispatch(context.Background(), call(run, "echo", i), "test", patience)
			if err != nil || !r.OK || r.Delivery != 1 {
				t.Errorf("small call %d beside: %+v, %v", i, r, err)
			}
			select {
			case <-end:
				return
			default:
			}
		}
	})
	return func() {
		close(end)
		wg.Wait()
	}
}

// TestB15HeadersCount: the server counts headers too. 30 KiB of them on a call neither reach its result nor break it.
func TestB15HeadersCount(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	b := connect(t, srv, unbroken(t))
	serve(t, b, bus.Worker{Queue: "test", Slots: 2, Tools: toolbox{"echo": echo}})
	heavy := strings.Repeat("h", 30<<10)
	for i, c := range []struct {
		size int
		want schema.ErrorType
	}{{100 << 10, ""}, {300 << 10, schema.TooLarge}, {mib*96/100 - 1, schema.TooLarge}} {
		sub := f.listen(fmt.Sprintf("jc.live.r.result.1.%d.test", i))
		data := fmt.Appendf(nil, `{"run":"r","turn":1,"index":%d,"tool":"echo","idempotent":true,"args":{"x":"%s"}}`, i, strings.Repeat("x", c.size))
		if _, code := f.store("jc.work.test.0", data, "X-Heavy", heavy); code != 0 {
			t.Fatalf("store: %d", code)
		}
		r := f.awaitResult(sub)
		if r.OK != (c.want == "") || !r.OK && r.Error.Type != c.want {
			t.Errorf("%d bytes: ok %t, %v", c.size, r.OK, r.Error)
		}
	}
}

// A dead letter that would be too large keeps the beginning of what it buries.
func TestB15DeadLetterOfALargeMessage(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	b := connect(t, srv, unbroken(t))
	serve(t, b, bus.Worker{Queue: "test", Tools: toolbox{"echo": echo}})
	dead := f.listen("jc.dead.test")
	garbage := strings.Repeat("x", mib-200)
	f.store("jc.work.test.0", []byte(garbage))
	var letter bus.DeadLetter
	if err := schema.Decode(f.next(dead).Data, &letter); err != nil {
		t.Fatal(err)
	}
	if letter.Size != int64(len(garbage)) || len(letter.Data) == 0 || !strings.HasPrefix(garbage, string(letter.Data)) {
		t.Errorf("size %d, %d bytes of data", letter.Size, len(letter.Data))
	}
	f.waitEmpty()
	if r, err := b.Dispatch(t.Context(), call("after", "echo", 0), "test", 10*time.Second); err != nil || !r.OK {
		t.Errorf("the next call: %+v, %v", r, err)
	}
}
