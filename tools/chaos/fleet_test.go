package chaos

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/bus/bustest/harness"
)

// fleet is all processes and the ways to the servers.
type fleet struct {
	t       testing.TB
	dir     string
	servers *harness.Servers
	workers []*harness.Kept
	hosts   []*harness.Kept
	links   []link // one for each process, in the order workers, hosts
	ledger  string
	leaks   string
}

// link is the ways of one process to the servers, one for each.
type link []*bustest.Proxy

// suffer does something to all of them for a while.
func (l link) suffer(do func(*bustest.Proxy), d time.Duration) {
	for _, p := range l {
		do(p)
	}
	time.Sleep(d)
	for _, p := range l {
		p.Heal()
	}
}

func swallow(p *bustest.Proxy) { p.Set(bustest.Fault{DropUp: true, DropDown: true}) }

func newFleet(t testing.TB, servers, workers, hosts int) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir()}
	f.ledger, f.leaks = filepath.Join(f.dir, "ledger"), filepath.Join(f.dir, "leaks")
	for _, file := range []string{f.ledger, f.leaks} {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f.servers = harness.StartServers(t, servers)
	for range workers {
		f.workers = append(f.workers, f.start("worker", append(f.through(), envLedger+"="+f.ledger)...))
	}
	for range hosts {
		f.hosts = append(f.hosts, f.start("orchestrator", f.through()...))
	}
	return f
}

// through puts a proxy in front of each server, and returns the settings of who connects through them.
func (f *fleet) through() []string {
	var l link
	var urls []string
	for _, addr := range f.servers.Addrs() {
		l = append(l, bustest.StartProxy(f.t, addr))
		urls = append(urls, l[len(l)-1].URL())
	}
	f.links = append(f.links, l)
	return []string{envURL + "=" + strings.Join(urls, ","), envReplicas + "=" + strconv.Itoa(len(l))}
}

// start starts this program again, in a role.
func (f *fleet) start(role string, env ...string) *harness.Kept {
	f.t.Helper()
	self, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	return harness.Keep(f.t, harness.Command{Program: self, Dir: f.dir, Env: append(env, envRole+"="+role, envLeaks+"="+f.leaks)})
}

// end has everybody but the servers end, and checks that nobody who ended without being killed, now or in the middle, had
// goroutines left.
func (f *fleet) end() {
	var ending sync.WaitGroup
	for _, p := range slices.Concat(f.workers, f.hosts) {
		ending.Go(func() { p.Stop(syscall.SIGTERM) })
	}
	ending.Wait()
	if leaks, err := os.ReadFile(f.leaks); err != nil || len(leaks) > 0 {
		f.t.Errorf("goroutines are left: %s, %v", leaks, err)
	}
}
