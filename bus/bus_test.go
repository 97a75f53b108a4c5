package bus_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

func TestMain(m *testing.M) { bustest.Main(m) }

// Short names for what tests of several packages share.
var (
	server  = bustest.Server
	connect = bustest.Connect
	serve   = bustest.Serve
	call    = bustest.Call
	echo    = bustest.Echo
)

type toolbox = bustest.Tools

const runOnce = bustest.RunOnce

func TestCallsRunOnWorkersAndComeBack(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	for range 3 {
		serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 4, Tools: toolbox{"echo": echo, "once" + runOnce: echo}})
	}
	run := schema.NewID()
	var wg sync.WaitGroup
	for i := range 100 {
		tool := "echo"
		if i%2 == 1 {
			tool = "once" + runOnce
		}
		wg.Go(func() {
			r, err := b.Dispatch(t.Context(), call(run, tool, i), "test", 10*time.Second)
			if err != nil || !r.OK || r.Output != fmt.Sprintf(`{"i":%d}`, i) || r.Index != i {
				t.Errorf("call %d: %+v, %v", i, r, err)
			}
		})
	}
	wg.Wait()
	facts, err := b.Facts(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := map[schema.Kind]int{}
	for _, f := range facts {
		count[f.Key.Kind]++
	}
	if count[schema.KindResult] != 100 || count[schema.KindBegin] != 50 {
		t.Errorf("facts: %v, want 100 results and 50 begins", count)
	}
}

func TestDeadlineOfACallNobodyTakes(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv, func(c *bus.Config) { c.Grace = 100 * time.Millisecond })
	b.Catalog()
	for _, tool := range []string{"echo", "once" + runOnce} {
		r, err := b.Dispatch(t.Context(), call(schema.NewID(), tool, 0), "nobody", 100*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if r.OK || r.Error.Type != schema.NoWorker {
			t.Errorf("%s: %+v", tool, r)
		}
	}
}

// TestBoundsWithoutMeasure: a call runs however long it may take, and a bound below 0 is none.
func TestBoundsWithoutMeasure(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 4, Tools: toolbox{"echo": echo}})
	for i, own := range []int64{0, -5, math.MaxInt64} {
		for j, within := range []time.Duration{0, math.MaxInt64} {
			c := call(schema.NewID(), "echo", 0)
			c.TimeoutMS = own
			if r, err := b.Dispatch(t.Context(), c, "test", within); err != nil || !r.OK {
				t.Errorf("%d.%d: %+v, %v", i, j, r, err)
			}
		}
	}
}

// TestStopOfACallThatRuns: whoever reads the result learns that the caller ended it.
func TestStopOfACallThatRuns(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b, g := connect(t, srv), newDoor()
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 2, Tools: toolbox{"wait": g.run, "wait" + runOnce: g.run}})
	for _, tool := range []string{"wait", "wait" + runOnce} {
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			<-g.started
			stop()
		}()
		r, err := b.Dispatch(ctx, call(schema.NewID(), tool, 0), "test", time.Minute)
		if err != nil || r.OK || r.Error.Type != schema.Cancelled || !strings.Contains(r.Error.Message, "the caller does not want it any more") {
			t.Errorf("%s: %+v, %v", tool, r, err)
		}
	}
}

func TestSelectionSeesWorkersComeAndGo(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	sel := b.Select("echo")
	if err := sel.Wait(t.Context(), 50*time.Millisecond); err == nil || !strings.Contains(err.Error(), "echo") {
		t.Errorf("without a worker: %v", err)
	}
	stop := serve(t, connect(t, srv), bus.Worker{Queue: "test", Tools: toolbox{"echo": echo}})
	if err := sel.Wait(t.Context(), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	tools, err := sel.Tools(t.Context())
	if err != nil || len(tools) != 1 || tools[0].Queue != "test" {
		t.Fatalf("%+v, %v", tools, err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for len(b.Catalog().Workers()) > 0 {
		if _, change := b.Catalog().Changes(); len(b.Catalog().Workers()) > 0 {
			<-change
		}
	}
	if tools, err := sel.Tools(t.Context()); err != nil || len(tools) > 0 {
		t.Errorf("the worker left, and its tool is still offered: %v, %v", tools, err)
	}
}

func BenchmarkDispatch(bm *testing.B) {
	srv := server(bm)
	b := connect(bm, srv)
	serve(bm, connect(bm, srv), bus.Worker{Queue: "test", Slots: 256, Tools: toolbox{"echo": echo}})
	run := schema.NewID()
	_, _ = b.Dispatch(bm.Context(), call(run, "echo", 0), "test", time.Minute)
	var n atomic.Int64
	bm.Run("one", func(bm *testing.B) {
		bm.ReportAllocs()
		for bm.Loop() {
			if _, err := b.Dispatch(bm.Context(), call(run, "echo", int(n.Add(1))), "test", time.Minute); err != nil {
				bm.Fatal(err)
			}
		}
	})
	bm.Run("parallel", func(bm *testing.B) {
		bm.ReportAllocs()
		bm.SetParallelism(500)
		bm.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := b.Dispatch(bm.Context(), call(run, "echo", int(n.Add(1))), "test", time.Minute); err != nil {
					bm.Error(err)
				}
			}
		})
	})
}

// TestFactsOfALongRun reads more facts than one request may match, also of one turn and of one kind.
func TestFactsOfALongRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                 string
		turns, results, says int
	}{
		{"many turns", 20, 60, 0},
		{"a turn with many calls", 1, 1100, 0},
		{"many messages", 1, 1, 1100},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := connect(t, server(t))
			run, other := schema.NewID(), schema.NewID()
			var last uint64
			write := func(key schema.Key, p schema.Encodable) {
				seq, err := b.Append(t.Context(), run, key, p, schema.Key{})
				if err != nil {
					t.Fatal(err)
				}
				last = seq
			}
			write(schema.OpenKey(), &schema.Open{Kind: schema.RunAgent})
			for k := 1; k <= c.says; k++ {
				write(schema.SayKey(k), &schema.Say{Role: schema.RoleUser, Text: "hello"})
			}
			for n := 1; n <= c.turns; n++ {
				write(schema.TurnKey(n), &schema.Turn{N: n})
				for i := range c.results {
					write(schema.ResultKey(n, i, "test"), &schema.Result{Run: run, Turn: n, Index: i})
				}
				if _, err := b.Append(t.Context(), other, schema.TurnKey(n), &schema.Turn{N: n}, schema.Key{}); err != nil {
					t.Fatal(err)
				}
			}
			write(schema.CtlKey(1), &schema.Ctl{Act: schema.CtlOwn})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			checkFacts(ctx, t, b, run, last, 2+c.says+c.turns*(1+c.results))
			checkFacts(ctx, t, b, run, last, 1+c.says, schema.KindCtl, schema.KindSay)
		})
	}
}

// checkFacts reads the facts of a run and wants so many, in stored order.
func checkFacts(ctx context.Context, t *testing.T, b *bus.Bus, run string, last uint64, want int, kinds ...schema.Kind) {
	t.Helper()
	facts, err := b.Facts(ctx, run, last, kinds...)
	if err != nil {
		t.Fatal(err)
	}
	if len(facts) != want || facts[len(facts)-1].Seq != last {
		t.Errorf("%d facts up to %d, want %d up to %d", len(facts), facts[len(facts)-1].Seq, want, last)
	}
	for i := range facts {
		if facts[i].Run != run || i > 0 && facts[i].Seq <= facts[i-1].Seq {
			t.Fatalf("fact %d, %+v: of another run or out of order", i, facts[i].Key)
		}
	}
}
