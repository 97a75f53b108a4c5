package bus_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// bucket opens the object store of a queue as a foreign program would.
func bucket(t testing.TB, srv *bustest.Servers, queue string) (nats.JetStreamContext, jetstream.ObjectStore) {
	t.Helper()
	js := streams(t, srv)
	store, err := js.ObjectStore(t.Context(), "jc_blobs_"+queue)
	if err != nil {
		t.Fatal(err)
	}
	old, err := js.Conn().JetStream()
	if err != nil {
		t.Fatal(err)
	}
	return old, store
}

// blobs lists the objects of a bucket without the links to them.
func blobs(t *testing.T, store jetstream.ObjectStore) []*jetstream.ObjectInfo {
	t.Helper()
	all, err := store.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(i *jetstream.ObjectInfo) bool { return i.Opts != nil && i.Opts.Link != nil })
}

// TestB15LargeFactIsWrittenOnce: the same fact again is the same fact and one object; another under its key is refused.
func TestB15LargeFactIsWrittenOnce(t *testing.T) {
	t.Parallel()
	srv := server(t)
	run, say := schema.NewID(), &schema.Say{Role: schema.RoleUser, Text: text(600 << 10), AtMS: 1}
	var wg sync.WaitGroup
	for range 4 {
		b, same := connect(t, srv), *say
		wg.Go(func() {
			for range 3 {
				if _, err := b.Append(context.Background(), run, schema.SayKey(1), &same, schema.Key{}); err != nil {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	wg.Wait()
	other := *say
	other.AtMS = 2
	if _, err := connect(t, srv).Append(t.Context(), run, schema.SayKey(1), &other, schema.Key{}); !errors.Is(err, schema.ErrExists) {
		t.Errorf("another fact: %v", err)
	}
	_, store := bucket(t, srv, "agents")
	objects := blobs(t, store)
	if len(objects) != 2 {
		t.Errorf("%d objects; want that of the fact and that of the refused one", len(objects))
	}
	want, err := schema.Encode(say)
	if err != nil {
		t.Fatal(err)
	}
	got, err := store.GetBytes(t.Context(), run+"."+schema.Digest(want))
	if err != nil || string(got) != string(want) {
		t.Errorf("a foreign reader gets %d bytes, %v", len(got), err)
	}
	if status, err := store.Status(t.Context()); err != nil || status.Size() > 3*uint64(len(want)) {
		t.Errorf("the store has %v, %v: chunks of writers that lost are left", status, err)
	}
}

// TestB15TamperedBlob: bytes that are not those that were stored are nobody's payload.
func TestB15TamperedBlob(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	run := schema.NewID()
	put(t, b, run, schema.SayKey(1), &schema.Say{Role: schema.RoleUser, Text: text(600 << 10)})
	js, store := bucket(t, srv, "agents")
	objects := blobs(t, store)
	if len(objects) != 1 {
		t.Fatalf("%d objects", len(objects))
	}
	if _, err := js.Publish("$O.jc_blobs_agents.C."+objects[0].NUID, []byte("more")); err != nil {
		t.Fatal(err)
	}
	facts, err := b.Facts(t.Context(), run, 0)
	if err != nil || len(facts) != 1 || schema.Decode(facts[0].Data, new(schema.Say)) == nil {
		t.Errorf("%v, %v", facts, err)
	}
}

// TestB15StoreThatComesBack: a bucket that somebody removed is made again.
func TestB15StoreThatComesBack(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	put(t, b, "one", schema.SayKey(1), &schema.Say{Role: schema.RoleUser, Text: text(600 << 10)})
	js, _ := bucket(t, srv, "agents")
	if err := js.DeleteObjectStore("jc_blobs_agents"); err != nil {
		t.Fatal(err)
	}
	put(t, b, "two", schema.SayKey(1), &schema.Say{Role: schema.RoleUser, Text: text(600 << 10)})
	facts, err := b.Facts(t.Context(), "two", 0)
	if err != nil || len(facts) != 1 || len(facts[0].Data) < 600<<10 {
		t.Errorf("%d facts, %v", len(facts), err)
	}
}

// TestA22ReadOutputInWholeCharacters: the parts of an output, one after another, are the output, whatever their size.
func TestA22ReadOutputInWholeCharacters(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	whole := strings.Repeat("a🙂é", 40<<10)
	serve(t, b, bus.Worker{Queue: "test", Tools: toolbox{"large": func(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
		return c.Done(whole), nil
	}}})
	r := settled(t, b, call(schema.NewID(), "large", 0))
	if !utf8.ValidString(r.Output) || r.Size != int64(len(whole)) {
		t.Errorf("%d bytes of %d", len(r.Output), r.Size)
	}
	for _, limit := range []int64{1, 2, 3, 5, 8 << 10, 100_000, 1 << 20} {
		start := max(0, int64(len(whole))-50*limit)
		start -= start % 7 // a character begins there
		at := start
		for {
			part, from, err := b.ReadOutput(t.Context(), "test", &r, at, limit)
			if err != nil {
				t.Fatal(err)
			}
			if from != at || !utf8.ValidString(part) || !strings.HasPrefix(whole[at:], part) || int64(len(part)) >= limit+utf8.UTFMax {
				t.Fatalf("limit %d: %d bytes from %d, asked at %d", limit, len(part), from, at)
			}
			if at += int64(len(part)); part == "" {
				break
			}
		}
		if at != int64(len(whole)) {
			t.Errorf("limit %d: ended at %d of %d", limit, at, len(whole))
		}
	}
	if part, from, err := b.ReadOutput(t.Context(), "test", &r, 2, 6); err != nil || part != "éa" || from != 5 {
		t.Errorf("from the middle of a character: %q from %d, %v", part, from, err)
	}
	if _, _, err := b.ReadOutput(t.Context(), "test", &schema.Result{}, 0, 1); !errors.Is(err, bus.ErrNoBlob) {
		t.Errorf("of a whole output: %v", err)
	}
}

// TestB15BreakWhileStoring: the connection is lost between two chunks; what is large arrives whole all the same.
func TestB15BreakWhileStoring(t *testing.T) {
	t.Parallel()
	whole := text(8 << 20)
	for _, side := range []string{"caller", "worker"} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			srv := server(t)
			f, line := stranger(t, srv), &lines{}
			cuttable := func(c *bus.Config) { c.Options = append(c.Options, nats.SetCustomDialer(line)) }
			b, w := connect(t, srv), connect(t, srv)
			c := call(schema.NewID(), "large"+runOnce, 0)
			if side == "caller" {
				b = connect(t, srv, cuttable)
				c.Args = schema.JSONText(whole)
			} else {
				w = connect(t, srv, cuttable)
			}
			serve(t, w, bus.Worker{Queue: "test", Tools: toolbox{"large" + runOnce: func(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
				return c.Done(whole), nil
			}}})
			chunks := f.listen("$O.jc_blobs_test.C.>")
			done := dispatched(t, b, c, "test", time.Minute)
			for range 10 {
				f.next(chunks)
			}
			if err := line.cut(); err != nil {
				t.Fatal(err)
			}
			if r := <-done; !r.OK || r.Size != int64(len(whole)) || r.Blob != schema.Digest([]byte(whole)) {
				t.Errorf("%.200v", r)
			}
		})
	}
}
