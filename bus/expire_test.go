package bus_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// largeRun has a large fact, a call with large arguments and a large output.
func largeRun(t *testing.T, b *bus.Bus, run string) {
	t.Helper()
	openRun(t, b, run)
	put(t, b, run, schema.SayKey(1), &schema.Say{Role: schema.RoleUser, Text: text(300 << 10)})
	c := call(run, "echo", 0)
	c.Args = schema.JSONText(text(300 << 10))
	if r := settled(t, b, c); r.Blob == "" {
		t.Fatalf("%.200v", r)
	}
}

// TestB15ExpiredRunIsArchivedAndGone: nothing is left of a run that was closed, and all is left of the others, though
// they hold the same.
func TestB15ExpiredRunIsArchivedAndGone(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	serve(t, b, bus.Worker{Queue: "test", Slots: 2, Tools: toolbox{"echo": echo}})
	for _, run := range []string{"closed", "open", "late"} {
		largeRun(t, b, run)
	}
	js, store := bucket(t, srv, "test")
	if _, err := store.PutString(t.Context(), "closed."+schema.Digest(nil), "of a foreign worker"); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish("$O.jc_blobs_test.C.closed.x", []byte("of a writer that died")); err != nil {
		t.Fatal(err)
	}
	put(t, b, "closed", schema.CloseKey(), &schema.Close{State: "done"})
	whole, err := b.Facts(t.Context(), "closed", 0)
	if err != nil {
		t.Fatal(err)
	}
	then := b.Now().Add(time.Second)
	for range 2 {
		if n, err := b.Expire(t.Context(), b.Now().Add(-bus.Retention)); n != 0 || err != nil {
			t.Fatalf("%d runs before their time, %v", n, err)
		}
	}
	if n, err := b.Expire(t.Context(), then); n != 1 || err != nil {
		t.Fatalf("%d runs, %v", n, err)
	}
	if n, err := b.Expire(t.Context(), then); n != 0 || err != nil {
		t.Errorf("again %d runs, %v", n, err)
	}
	if facts, err := b.Facts(t.Context(), "closed", 0); len(facts) != 0 || err != nil {
		t.Errorf("%d facts are left, %v", len(facts), err)
	}
	for _, queue := range []string{"test", "agents"} {
		if left := leftOf(t, js, "jc_blobs_"+queue, "closed"); left != nil {
			t.Errorf("%s: left are %q", queue, left)
		}
	}
	for _, run := range []string{"open", "late"} {
		facts, err := b.Facts(t.Context(), run, 0)
		if err != nil || len(facts) != 3 || len(facts[1].Data) < 300<<10 {
			t.Errorf("%s: %d facts, %v", run, len(facts), err)
			continue
		}
		r, err := schema.DecodeResult(facts[2].Data)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.ReadOutput(t.Context(), "test", r, 0, 10); err != nil {
			t.Error(err)
		}
	}
	checkArchive(t, archiveOf(t, srv, "closed"), whole)
}

// leftOf returns the subjects of a bucket that are of a run.
func leftOf(t *testing.T, js nats.JetStreamContext, bucket, run string) (left []string) {
	t.Helper()
	info, err := js.StreamInfo("OBJ_"+bucket, &nats.StreamInfoRequest{SubjectsFilter: ">"})
	if err != nil {
		t.Fatal(err)
	}
	if objects := len(info.State.Subjects); objects == 0 || objects%2 != 0 {
		left = append(left, "an odd number of subjects")
	}
	for s := range info.State.Subjects {
		if strings.HasPrefix(s, "$O."+bucket+".C."+run+".") {
			left = append(left, s)
		}
	}
	return left
}

func archiveOf(t *testing.T, srv *bustest.Servers, run string) []byte {
	t.Helper()
	store, err := streams(t, srv).ObjectStore(t.Context(), "jc_archive")
	if err != nil {
		t.Fatal(err)
	}
	data, err := store.GetBytes(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// checkArchive wants all facts, and the output that the result holds a part of.
func checkArchive(t *testing.T, archive []byte, want []schema.Fact) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(archive))
	lines.Buffer(nil, 4<<20)
	var got []schema.Fact
	outputs := 0
	for lines.Scan() {
		var a bus.Archived
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		key, err := schema.ParseKey(a.Key)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, schema.Fact{Run: "closed", Key: key, Seq: a.Seq, Time: time.UnixMilli(a.AtMS), Data: a.Data})
		outputs += len(a.Output)
	}
	same := cmp.Comparer(func(x, y time.Time) bool { return x.UnixMilli() == y.UnixMilli() })
	if diff := cmp.Diff(want, got, same); diff != "" || outputs != len(text(300<<10)) {
		t.Errorf("%d bytes of outputs, %.500s", outputs, diff)
	}
}

// TestB15ExpireIsFinishedByTheNext: what was interrupted after each of its steps is taken up.
func TestB15ExpireIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	serve(t, b, bus.Worker{Queue: "test", Tools: toolbox{"echo": echo}})
	largeRun(t, b, "closed")
	put(t, b, "closed", schema.CloseKey(), &schema.Close{State: "done"})
	for bound := time.Millisecond; ; bound += 2 * time.Millisecond {
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		n, err := b.Expire(ctx, b.Now().Add(time.Second))
		cancel()
		if err == nil {
			if n > 1 {
				t.Errorf("%d runs", n)
			}
			break
		}
		if bound > patience {
			t.Fatal(err)
		}
	}
	if facts, err := b.Facts(t.Context(), "closed", 0); err != nil || len(facts) != 0 {
		t.Errorf("%d facts, %v", len(facts), err)
	}
	if archive := archiveOf(t, srv, "closed"); bytes.Count(archive, []byte("\n")) != 4 {
		t.Errorf("%d bytes are archived", len(archive))
	}
}
