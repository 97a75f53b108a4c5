package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// put writes a fact that must be written.
func put(t testing.TB, b *bus.Bus, run string, key schema.Key, p schema.Encodable) {
	t.Helper()
	if _, err := b.Append(t.Context(), run, key, p, schema.Key{}); err != nil {
		t.Fatal(err)
	}
}

func openRun(t testing.TB, b *bus.Bus, run string) {
	t.Helper()
	put(t, b, run, schema.OpenKey(), &schema.Open{Kind: schema.RunAgent, Agent: &schema.AgentSpec{ID: "helper"}})
}

// TestRunsNewestFirst: windows that hold nothing, little, and more than is kept at once.
func TestRunsNewestFirst(t *testing.T) {
	t.Parallel()
	b := connect(t, server(t))
	var want []string
	add := func(n, between int) {
		for i := range n {
			id := fmt.Sprintf("run-%d-%d", len(want), i)
			openRun(t, b, id)
			for k := range between {
				put(t, b, id, schema.SayKey(k+1), &schema.Say{Role: schema.RoleUser})
			}
			want = append([]string{id}, want...)
		}
	}
	add(200, 0)
	add(2, 1500)
	add(70, 3)
	put(t, b, want[0], schema.CloseKey(), &schema.Close{State: "done", Calls: 3})
	put(t, b, want[100], schema.CloseKey(), &schema.Close{State: "stopped"})
	var got []string
	for info, err := range b.Runs(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if closed := len(got) == 0 || len(got) == 100; closed != (info.Close != nil) || info.Open.Agent == nil || info.At.IsZero() {
			t.Errorf("run %d: %+v", len(got), info)
		}
		got = append(got, info.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	for range b.Runs(t.Context()) {
		break // stops early
	}
	for range connect(t, server(t)).Runs(t.Context()) {
		t.Error("a run where there is none")
	}
}

func TestFindRun(t *testing.T) {
	t.Parallel()
	b := connect(t, server(t))
	for _, id := range []string{"abc", "abcd", "abce", "xyz-1"} {
		openRun(t, b, id)
	}
	var many *bus.AmbiguousError
	for prefix, want := range map[string]string{"abc": "abc", "abcd": "abcd", "x": "xyz-1"} {
		if got, err := b.FindRun(t.Context(), prefix); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", prefix, got, err, want)
		}
	}
	for _, prefix := range []string{"q", "*", ">", "", "abc.d"} {
		if got, err := b.FindRun(t.Context(), prefix); !errors.Is(err, bus.ErrNoRun) {
			t.Errorf("%s: %q, %v", prefix, got, err)
		}
	}
	if _, err := b.FindRun(t.Context(), "ab"); !errors.As(err, &many) || len(many.Runs) != 2 {
		t.Errorf("ab: %v", err)
	}
}

func TestStopRunTakesTheNextSlot(t *testing.T) {
	t.Parallel()
	b := connect(t, server(t))
	openRun(t, b, "r")
	put(t, b, "r", schema.CtlKey(1), &schema.Ctl{Act: schema.CtlOwn, Instance: "i"})
	for _, already := range []bool{false, true} {
		s, err := b.StopRun(t.Context(), "r", "enough")
		if err != nil || s != (bus.Stop{Slot: 2, Already: already, Hinted: true}) {
			t.Errorf("%+v, %v", s, err)
		}
	}
	put(t, b, "r", schema.CloseKey(), &schema.Close{State: "stopped"})
	if s, err := b.StopRun(t.Context(), "r", "again"); !errors.Is(err, bus.ErrRunClosed) {
		t.Errorf("closed: %+v, %v", s, err)
	}
	openRun(t, b, "closed")
	put(t, b, "closed", schema.CloseKey(), &schema.Close{State: "done"})
	if s, err := b.StopRun(t.Context(), "closed", "late"); !errors.Is(err, bus.ErrRunClosed) {
		t.Errorf("closed: %+v, %v", s, err)
	}
	if s, err := b.StopRun(t.Context(), "none", "x"); !errors.Is(err, bus.ErrNoRun) {
		t.Errorf("no run: %+v, %v", s, err)
	}
}

func TestSayTo(t *testing.T) {
	t.Parallel()
	b := connect(t, server(t))
	openRun(t, b, "r")
	put(t, b, "call", schema.OpenKey(), &schema.Open{Kind: schema.RunCall})
	for k := 1; k <= 2; k++ {
		if got, err := b.SayTo(t.Context(), "r", "hello"); err != nil || got != k {
			t.Errorf("say %d: %d, %v", k, got, err)
		}
	}
	put(t, b, "r", schema.CloseKey(), &schema.Close{State: "done"})
	if k, err := b.SayTo(t.Context(), "r", "late"); !errors.Is(err, bus.ErrRunClosed) {
		t.Errorf("closed: %d, %v", k, err)
	}
	if k, err := b.SayTo(t.Context(), "call", "x"); err == nil {
		t.Errorf("a call heard say %d", k)
	}
	if _, err := b.SayTo(t.Context(), "none", "x"); !errors.Is(err, bus.ErrNoRun) {
		t.Errorf("no run: %v", err)
	}
}

// TestFollowMissesNothing follows a run while it is written, from several points in time.
func TestFollowMissesNothing(t *testing.T) {
	t.Parallel()
	srv := server(t)
	writer, reader := connect(t, srv), connect(t, srv)
	const says = 300
	openRun(t, writer, "r")
	openRun(t, writer, "other")
	read := func(t *testing.T) {
		want, last := says+2, uint64(0)
		for f, err := range reader.Follow(t.Context(), "r") {
			if err != nil {
				t.Error(err)
				return
			}
			if want--; f.Seq <= last || f.Run != "r" {
				t.Errorf("%v %d after %d", f.Key, f.Seq, last)
			}
			last = f.Seq
		}
		if want != 0 {
			t.Errorf("%d facts are missing", want)
		}
	}
	var readers sync.WaitGroup
	for k := 1; k <= says; k++ {
		if k%100 == 1 {
			readers.Go(func() { read(t) })
		}
		put(t, writer, "r", schema.SayKey(k), &schema.Say{Role: schema.RoleUser})
	}
	put(t, writer, "r", schema.CloseKey(), &schema.Close{State: "done"})
	readers.Wait()
	read(t)
}

func TestFollowEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := connect(t, server(t))
	openRun(t, b, "r")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for f, err := range b.Follow(ctx, "r") {
		if n++; n == 1 {
			if f.Key != schema.OpenKey() {
				t.Errorf("%v, %v", f, err)
			}
			cancel()
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v", f, err)
		}
	}
	if n != 2 {
		t.Errorf("%d, want the fact and the error", n)
	}
}

// TestDeadLetters: one that holds a call, the beginning of one, one of a run, and one that holds no call.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	serve(t, b, bus.Worker{Queue: "test", Slots: 1, Tools: bustest.Tools{"echo": echo}})
	f := stranger(t, srv)
	letter := &bus.DeadLetter{Queue: "lies", Reason: "its worker was lost", Seq: 7, Delivery: 4, Worker: "w", AtMS: 1}
	old := schema.Call{Run: "old", Turn: 3, Index: 2, Tool: "echo", Args: `{"a":1}`, Bound: `{"b":2}`, Idempotent: true, Principal: schema.Principal{ID: "ann"}}
	letter.Data, _ = schema.Encode(&old)
	bury(t, f.nc, "test", letter)
	cut := *letter
	cut.Size = 1 << 20
	bury(t, f.nc, "test", &cut)
	cut = *letter
	bury(t, f.nc, "agents", &cut)
	cut.Data = []byte("no call")
	bury(t, f.nc, "test", &cut)
	var got []string
	for l, err := range b.DeadLetters(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d %s %v %s", l.ID, l.Queue, l.Call != nil, l.Reason))
	}
	want := []string{"4 test false its worker was lost", "3 agents true its worker was lost", "2 test false its worker was lost", "1 test true its worker was lost"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("letters (-want +got):\n%s", diff)
	}
	for id := uint64(2); id <= 4; id++ {
		l, err := b.DeadLetter(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := b.Retry(t.Context(), l, time.Second); !errors.Is(err, bus.ErrNoRetry) {
			t.Errorf("letter %d: %+v, %v", id, r, err)
		}
	}
	l, err := b.DeadLetter(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Retry(t.Context(), l, 10*time.Second)
	if err != nil || !r.OK || r.Output != `{"a":1}` || r.Run == "old" || r.Turn != 1 || r.Index != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	checkClosed(t, b, r.Run)
	if err := b.DropDeadLetter(t.Context(), 1); err != nil {
		t.Error(err)
	}
	if err := b.DropDeadLetter(t.Context(), 1); !errors.Is(err, bus.ErrNoLetter) {
		t.Errorf("second drop: %v", err)
	}
	if _, err := b.DeadLetter(t.Context(), 1); !errors.Is(err, bus.ErrNoLetter) {
		t.Errorf("read after drop: %v", err)
	}
}

// bury stores a dead letter as a worker does.
func bury(t *testing.T, nc *nats.Conn, queue string, l *bus.DeadLetter) {
	t.Helper()
	data, err := schema.Encode(l)
	if err == nil {
		_, err = nc.Request("jc.dead."+queue, data, 5*time.Second)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// checkClosed wants the facts of one call on a run of its own.
func checkClosed(t *testing.T, b *bus.Bus, run string) {
	t.Helper()
	facts, err := b.Facts(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	var o schema.Open
	if len(facts) < 3 || facts[len(facts)-1].Key != schema.CloseKey() || schema.Decode(facts[0].Data, &o) != nil || o.Kind != schema.RunCall || o.Principal.ID != "ann" {
		t.Errorf("facts %v, open %+v", facts, o)
	}
}
