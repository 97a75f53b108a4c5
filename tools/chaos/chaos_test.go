package chaos

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/schema"
)

var (
	flagFor     = flag.Duration("chaos.for", 8*time.Second, "how long things go wrong")
	flagRuns    = flag.Int("chaos.runs", 12, "runs, begun while things go wrong")
	flagSeed    = flag.Uint64("chaos.seed", 0, "what goes wrong when; 0: anything")
	flagWorkers = flag.Int("chaos.workers", 3, "worker processes")
	flagHosts   = flag.Int("chaos.orchestrators", 2, "orchestrator processes")
	flagServers = flag.Int("chaos.servers", 1, "server processes; three make a cluster with every stream on each of them")
)

const (
	// calmWithin is how long runs may take to end once nothing goes wrong any more.
	calmWithin = 2 * time.Minute
	// sweptWithin is how long a message may stay that was acknowledged: of several servers a new leader may not know that it
	// is to be removed, until it looks for such messages, which it does every 2 to 2.5 minutes.
	sweptWithin = 4 * time.Minute
)

func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("chaos takes its time; not with -short")
	}
	seed := *flagSeed
	if seed == 0 {
		seed = rand.Uint64() >> 32
	}
	t.Logf("again with: go test ./tools/chaos -run TestChaos -v -args -chaos.seed %d -chaos.for %v -chaos.runs %d -chaos.servers %d",
		seed, *flagFor, *flagRuns, *flagServers)
	f := newFleet(t, *flagServers, *flagWorkers, *flagHosts)
	b, err := connect(t.Context(), bus.Config{URL: f.servers.URL(), Replicas: *flagServers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	runs := make(chan []string, 1)
	go func() { runs <- begin(t.Context(), b, seed, *flagRuns, *flagFor*3/4) }()
	f.endure(weather(seed, *flagFor, *flagServers))
	v := &verdict{TB: t, bus: b, fleet: f, seed: seed, runs: <-runs, ends: map[string]uint64{}}
	v.wait()
	v.all()
	f.end()
	f.report()
	if t.Failed() {
		f.logs()
	}
}

// begin starts runs, spread over a time. Each is started until the server has it: a second copy is harmless.
func begin(ctx context.Context, b *bus.Bus, seed uint64, n int, within time.Duration) []string {
	runs := make([]string, n)
	for i := range runs {
		runs[i] = schema.NewID()
		call := &schema.Call{Run: runs[i], Tool: agent, Args: schema.JSONText(fmt.Sprintf(`{"task":%q}`, task(seed, i)))}
		for b.StartRun(ctx, call) != nil && ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(within / time.Duration(n))
	}
	return runs
}

// report says what the fleet went through.
func (f *fleet) report() {
	starts := func(list []*harness.Kept) (n int) {
		for _, p := range list {
			n += p.Starts()
		}
		return n
	}
	f.t.Logf("processes started: %d servers, %d workers, %d orchestrators", starts(f.servers.Processes()), starts(f.workers), starts(f.hosts))
}

func (f *fleet) logs() {
	for what, list := range map[string][]*harness.Kept{"server": f.servers.Processes(), "worker": f.workers, "orchestrator": f.hosts} {
		for _, p := range list {
			f.t.Logf("the end of the log of a %s:\n%s", what, p.Log())
		}
	}
}

// streams returns the streams as the server sees them.
func streams(t testing.TB, url string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// eventually is bustest.Eventually with the patience of this test.
func eventually(what string, so func() (bool, string)) error { return within(calmWithin, what, so) }

func within(patience time.Duration, what string, so func() (bool, string)) error {
	late := time.Now().Add(patience)
	for {
		ok, seen := so()
		if ok {
			return nil
		}
		if time.Now().After(late) {
			return fmt.Errorf("%s: not within %v: %s", what, patience, seen)
		}
		time.Sleep(200 * time.Millisecond)
	}
}
