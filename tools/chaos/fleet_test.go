package chaos

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus/bustest"
)

// fleet is all processes and the ways to the servers.
type fleet struct {
	t       testing.TB
	dir     string
	servers *servers
	workers []*process
	hosts   []*process
	links   []link // one for each process, in the order workers, hosts
	ledger  string
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
	f.ledger = filepath.Join(f.dir, "ledger")
	if err := os.WriteFile(f.ledger, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f.servers = f.startServers(servers)
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
	for _, addr := range f.servers.clients {
		l = append(l, bustest.StartProxy(f.t, addr))
		urls = append(urls, l[len(l)-1].URL())
	}
	f.links = append(f.links, l)
	return []string{envURL + "=" + strings.Join(urls, ","), envReplicas + "=" + strconv.Itoa(len(l))}
}

// process is one process of the fleet, started again whenever it ends, until it is stopped.
type process struct {
	role string
	env  []string
	log  tail

	mu      sync.Mutex
	cmd     *exec.Cmd
	stopped bool
	starts  int
	after   time.Duration // before it is started again
	ended   sync.WaitGroup
}

func (f *fleet) start(role string, env ...string) *process {
	f.t.Helper()
	p := &process{role: role, env: append(env, envRole+"="+role)}
	if err := p.launch(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { p.stop(syscall.SIGKILL) })
	return p
}

// launch starts the process and sees to it that it is started again.
func (p *process) launch() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd = cmd
	p.starts++
	p.ended.Go(func() { p.relaunch(cmd) })
	return nil
}

func (p *process) relaunch(cmd *exec.Cmd) {
	_ = cmd.Wait() // it was killed, or killed itself
	p.mu.Lock()
	after := p.after
	p.after = 0
	p.mu.Unlock()
	time.Sleep(after)
	if err := p.launch(); err != nil {
		p.log.Write([]byte("not started again: " + err.Error() + "\n"))
	}
}

// signal sends sig; after it is how long the process stays away if it ends by it.
func (p *process) signal(sig syscall.Signal, after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = after
	_ = p.cmd.Process.Signal(sig) // it may have ended by itself
}

// pause stops the process for a while. Whoever is killed meanwhile stays dead.
func (p *process) pause(d time.Duration) {
	p.mu.Lock()
	cmd := p.cmd
	p.mu.Unlock()
	if cmd.Process.Signal(syscall.SIGSTOP) != nil {
		return
	}
	time.Sleep(d)
	_ = cmd.Process.Signal(syscall.SIGCONT)
}

// stop ends the process for good and waits for it.
func (p *process) stop(sig syscall.Signal) {
	p.mu.Lock()
	p.stopped = true
	err := p.cmd.Process.Signal(sig)
	p.mu.Unlock()
	if err == nil || errors.Is(err, os.ErrProcessDone) {
		p.ended.Wait()
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const tailSize = 64 << 10

func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(data)
	if t.buf.Len() > 2*tailSize {
		t.buf.Next(t.buf.Len() - tailSize)
	}
	return len(data), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
