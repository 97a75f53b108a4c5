package bus_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

// TestNoNakAfterABreak: a worker that was cut off while it ran a call does not give it back, for it may be somebody
// else's by now. AckWait does, and the call is tried again.
func TestNoNakAfterABreak(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	b := connect(t, srv)
	line, opened := &lines{}, make(chan struct{})
	started := make(chan struct{}, 3)
	w := connect(t, srv, func(c *bus.Config) { c.Options = append(c.Options, nats.SetCustomDialer(line)) })
	serve(t, w, bus.Worker{Queue: "test", Tools: toolbox{"flaky": func(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
		started <- struct{}{}
		<-opened
		if len(started) == 0 {
			return schema.Result{}, &schema.Pending{Reason: "try again"}
		}
		return c.Done("fine"), nil
	}}})
	acks := f.acks("test")
	done := dispatched(t, b, call("r", "flaky", 0), "test", time.Minute)
	for len(started) == 0 {
		f.ack(acks, "+WPI")
	}
	asked := f.listen("$JS.API.STREAM.INFO.JC_WORK")
	if err := line.cut(); err != nil {
		t.Fatal(err)
	}
	f.next(asked) // it is back
	<-started
	close(opened)
	if r := <-done; !r.OK || r.Delivery != 2 {
		t.Errorf("%+v", r)
	}
	for word := ""; word != "+ACK"; {
		if word = string(f.next(acks).Data); strings.HasPrefix(word, "-NAK") {
			t.Errorf("worker says %s", word)
		}
	}
}
