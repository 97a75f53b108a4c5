package bus_test

import (
	"context"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

func TestWatchProgressSaysWhoWorksOnACall(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b, w := connect(t, srv), connect(t, srv)
	heard := make(chan struct{})
	talk := func(ctx context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
		schema.Progress(ctx, "half way")
		select {
		case <-heard: // the result waits until the word has arrived
		case <-ctx.Done():
		}
		return c.Done("done"), nil
	}
	serve(t, w, bus.Worker{Queue: "test", Tools: toolbox{"talk": talk}})
	run := schema.NewID()
	type said struct {
		turn, index  int
		text, worker string
	}
	var got []said
	stop, err := b.WatchProgress(run, func(turn, index int, p bus.Progress) {
		got = append(got, said{turn, index, p.Text, p.Worker})
		close(heard)
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Dispatch(t.Context(), call(run, "talk", 3), "test", 10*time.Second)
	stop()
	stop()
	if err != nil || !r.OK {
		t.Fatalf("%+v, %v", r, err)
	}
	want := said{1, 3, "half way", w.Instance()}
	if len(got) != 1 || got[0] != want {
		t.Errorf("heard %+v, want one %+v", got, want)
	}
}
