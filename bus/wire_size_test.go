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

// TestB15Sizes: what is too large for a message goes through the object store, and of a long output the result holds
// head and tail. The connection never drops, and calls beside it do not notice.
func TestB15Sizes(t *testing.T) {
	t.Parallel()
	srv := server(t)
	keep := unbroken(t)
	b, w := connect(t, srv, keep), connect(t, srv, keep)
	large := func(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
		return c.Done(text(sizes[c.Index].bytes)), nil
	}
	failing := func(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
		return c.Fail(schema.ToolFailed, text(sizes[c.Index].bytes)), nil
	}
	count := func(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
		return c.Done(schema.Digest([]byte(c.Args))), nil
	}
	serve(t, w, bus.Worker{Queue: "test", Slots: 8, Tools: toolbox{
		"count": count, "count" + runOnce: count, "large": large, "large" + runOnce: large, "failing": failing,
	}})
	stop := beside(t, b)
	for i, size := range sizes {
		args := schema.JSONText(`{"x":"` + text(size.bytes-8) + `"}`)
		for _, tool := range []string{"count", "count" + runOnce} {
			c := call(schema.NewID(), tool, i)
			c.Args = args
			if r := settled(t, b, c); !r.OK || r.Output != schema.Digest([]byte(args)) {
				t.Errorf("arguments of %s for %s: %.200v", size.name, tool, r)
			}
		}
		for _, tool := range []string{"large", "large" + runOnce} {
			expectCut(t, b, call(schema.NewID(), tool, i), text(size.bytes))
		}
		r := settled(t, b, call(schema.NewID(), "failing", i))
		if r.OK || r.Error.Type != schema.ToolFailed || len(r.Output)+len(r.Error.Message) > 24<<10 {
			t.Errorf("error text of %s: %.200v", size.name, r)
		}
	}
	stop()
}

// TestB15Limit: above 64 MiB there is nothing but a result that says so.
func TestB15Limit(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv, unbroken(t))
	large := func(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
		return c.Done(strings.Repeat("x", schema.MaxPayload+1)), nil
	}
	serve(t, b, bus.Worker{Queue: "test", Tools: toolbox{"large": large, "echo": echo}})
	c := call(schema.NewID(), "echo", 0)
	c.Args = schema.JSONText(`{"x":"` + strings.Repeat("x", schema.MaxPayload) + `"}`)
	for what, c := range map[string]*schema.Call{"arguments": c, "output": call(schema.NewID(), "large", 0)} {
		if r := settled(t, b, c); r.OK || r.Error.Type != schema.TooLarge || r.Blob != "" || !strings.Contains(r.Output, "64 MiB") {
			t.Errorf("%s: %.200v", what, r)
		}
	}
	say := &schema.Say{Role: schema.RoleUser, Text: strings.Repeat("x", schema.MaxPayload)}
	if _, err := b.Append(t.Context(), schema.NewID(), schema.SayKey(1), say, schema.Key{}); err == nil || !strings.Contains(err.Error(), "64 MiB") {
		t.Errorf("a fact: %v", err)
	}
}

// text is n bytes of text whose places can be told apart.
func text(n int) string {
	var s strings.Builder
	s.Grow(n + 16)
	for i := 0; s.Len() < n; i++ {
		fmt.Fprintf(&s, "line %d é\n", i)
	}
	return schema.CleanText(s.String()[:n])
}

func settled(t *testing.T, b *bus.Bus, c *schema.Call) schema.Result {
	t.Helper()
	r, err := b.Dispatch(t.Context(), c, "test", patience)
	if err != nil {
		t.Fatalf("%s: %v", c, err)
	}
	return r
}

// expectCut wants head and tail of the output, a word about the rest, and the whole where the result says.
func expectCut(t *testing.T, b *bus.Bus, c *schema.Call, whole string) {
	t.Helper()
	r := settled(t, b, c)
	head, rest, marked := strings.Cut(r.Output, "\n[... ")
	mark, tail, _ := strings.Cut(rest, " ...]\n")
	switch {
	case !r.OK || r.Blob != schema.Digest([]byte(whole)) || r.Size != int64(len(whole)) || len(r.Output) > 34<<10:
		t.Errorf("%s: %.300v", c, r)
	case !marked || !strings.HasPrefix(whole, head) || !strings.HasSuffix(whole, tail) || len(tail) < 16<<10-4:
		t.Errorf("%s: head of %d bytes, %q, tail of %d", c, len(head), mark, len(tail))
	case !strings.Contains(mark, fmt.Sprintf(`read_output {"call":"%d.%d","offset":%d}`, c.Turn, c.Index, len(head))):
		t.Errorf("%s: %q", c, mark)
	}
	got, from, err := b.ReadOutput(t.Context(), "test", &r, int64(len(head)), 1000)
	if err != nil || from != int64(len(head)) || !strings.HasPrefix(whole[len(head):], got) || len(got) < 1000 || len(got) > 1003 {
		t.Errorf("%s: read %d bytes from %d: %v", c, len(got), from, err)
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
			r, err := b.Dispatch(context.Background(), call(run, "count", i), "test", patience)
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

// TestB15HeadersCount: the server counts headers too. 30 KiB of them on a call neither reach its result nor break it,
// nor does a call near the server's limit that echoes its arguments.
func TestB15HeadersCount(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	b := connect(t, srv, unbroken(t))
	serve(t, b, bus.Worker{Queue: "test", Slots: 2, Tools: toolbox{"echo": echo}})
	heavy := strings.Repeat("h", 30<<10)
	for i, size := range []int{100 << 10, 300 << 10, mib*96/100 - 1} {
		sub := f.listen(fmt.Sprintf("jc.live.r.result.1.%d.test", i))
		data := fmt.Appendf(nil, `{"run":"r","turn":1,"index":%d,"tool":"echo","idempotent":true,"args":{"x":"%s"}}`, i, strings.Repeat("x", size))
		if _, code := f.store("jc.work.test.0", data, "X-Heavy", heavy); code != 0 {
			t.Fatalf("store: %d", code)
		}
		r := f.awaitResult(sub)
		if !r.OK || (r.Blob != "") != (size > schema.MaxInline) {
			t.Errorf("%d bytes: ok %t, blob %q, %v", size, r.OK, r.Blob, r.Error)
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
