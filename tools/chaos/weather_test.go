package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/bus/bustest"
)

// fault is one thing that goes wrong.
type fault struct {
	at    time.Duration // from the beginning
	what  string
	who   int           // number of the process, taken modulo how many there are
	lasts time.Duration // until it is over
}

// kind is a kind of fault.
type kind struct {
	what  string
	share int           // how often it happens, of the shares of all
	most  time.Duration // that it lasts
}

// faults are what goes wrong with a fleet.
var faults = []kind{
	{"kill worker", 5, time.Second},
	{"kill orchestrator", 3, time.Second},
	{"pause worker", 2, 9 * time.Second}, // longer than AckWait: others take its calls
	{"pause orchestrator", 2, 9 * time.Second},
	{"roll worker", 2, 0},
	{"roll orchestrator", 1, 0},
	{"cut off", 2, 9 * time.Second},
	{"swallow", 1, 9 * time.Second},
}

// alone are what goes wrong with one server: everything waits for it.
var alone = []kind{
	{"kill server", 1, 500 * time.Millisecond},
	{"pause server", 1, 3 * time.Second},
}

// together are what goes wrong with one of several, while the others go on.
var together = []kind{
	{"kill server", 3, 9 * time.Second},
	{"pause server", 2, 9 * time.Second},
	{"roll server", 1, 0},
	{"isolate server", 3, 12 * time.Second}, // longer than its leaders take to give up
}

// weather is what goes wrong within a time, from a seed.
func weather(seed uint64, within time.Duration, servers int) (list []fault) {
	kinds := slices.Concat(faults, alone)
	if servers > 1 {
		kinds = slices.Concat(faults, together)
	}
	shares := 0
	for _, k := range kinds {
		shares += k.share
	}
	rnd := rand.New(rand.NewPCG(seed, 0x77656174686572))
	for at := time.Second; at < within; at += 100*time.Millisecond + time.Duration(rnd.Int64N(int64(900*time.Millisecond))) {
		n := rnd.IntN(shares)
		for _, k := range kinds {
			if n -= k.share; n < 0 {
				list = append(list, fault{at: at, what: k.what, who: rnd.IntN(1 << 16), lasts: time.Duration(rnd.Int64N(int64(k.most) + 1))})
				break
			}
		}
	}
	return list
}

// endure has everything go wrong and returns when it is over.
func (f *fleet) endure(list []fault) {
	began := time.Now()
	var open sync.WaitGroup
	defer open.Wait()
	busy := map[any]bool{} // a process or a proxy that something is done to already
	var mu sync.Mutex
	for _, x := range list {
		time.Sleep(time.Until(began.Add(x.at)))
		target, do := f.fault(x)
		mu.Lock()
		taken := busy[target]
		busy[target] = true
		mu.Unlock()
		if taken {
			continue
		}
		open.Go(func() {
			do()
			mu.Lock()
			defer mu.Unlock()
			delete(busy, target)
		})
	}
}

// fault returns whom a fault hits, and what happens. Of the servers one at a time is hit.
func (f *fleet) fault(x fault) (target any, do func()) {
	worker, host := f.workers[x.who%len(f.workers)], f.hosts[x.who%len(f.hosts)]
	i := x.who % len(f.links)
	switch x.what {
	case "kill worker":
		return worker, func() { worker.Signal(syscall.SIGKILL, x.lasts) }
	case "kill orchestrator":
		return host, func() { host.Signal(syscall.SIGKILL, x.lasts) }
	case "pause worker":
		return worker, func() { worker.Pause(x.lasts) }
	case "pause orchestrator":
		return host, func() { host.Pause(x.lasts) }
	case "roll worker":
		return worker, func() { worker.Signal(syscall.SIGTERM, 0) }
	case "roll orchestrator":
		return host, func() { host.Signal(syscall.SIGTERM, 0) }
	case "cut off":
		return i, func() { f.links[i].suffer((*bustest.Proxy).Cut, x.lasts) }
	case "swallow":
		return i, func() { f.links[i].suffer(swallow, x.lasts) }
	}
	return f.servers, f.serverFault(x)
}

// serverFault returns what happens to a server. When it is over the server is back, or was given the time to come back.
func (f *fleet) serverFault(x fault) func() {
	i := x.who % len(f.servers.Processes())
	switch x.what {
	case "kill server":
		return func() { f.servers.End(i, syscall.SIGKILL, x.lasts) }
	case "roll server":
		return func() { f.servers.End(i, syscall.SIGTERM, x.lasts) }
	case "pause server":
		return func() { f.servers.Processes()[i].Pause(x.lasts) }
	case "isolate server":
		return func() { f.servers.Isolate(i, x.lasts) }
	}
	panic("fault " + x.what + " is unknown")
}

// TestWeather: a seed is a weather.
func TestWeather(t *testing.T) {
	t.Parallel()
	show := func(seed uint64) []string {
		var s []string
		for _, x := range weather(seed, time.Minute, 3) {
			s = append(s, fmt.Sprintf("%v %s %d %v", x.at, x.what, x.who, x.lasts))
		}
		return s
	}
	if diff := cmp.Diff(show(7), show(7)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(show(7), show(8)) {
		t.Error("two seeds are the same weather")
	}
}
