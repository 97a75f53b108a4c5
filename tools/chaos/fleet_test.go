package chaos

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus/bustest"
)

// fleet is all processes and the way to the server.
type fleet struct {
	t       testing.TB
	dir     string
	server  *process
	workers []*process
	hosts   []*process
	proxies []*bustest.Proxy // one for each process, in the order workers, hosts
	direct  string           // URL of the server, for the test itself
	ledger  string
}

func newFleet(t testing.TB, workers, hosts int) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir()}
	f.ledger = filepath.Join(f.dir, "ledger")
	if err := os.WriteFile(f.ledger, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	addr := "127.0.0.1:" + strconv.Itoa(port)
	f.direct = "nats://" + addr
	f.server = f.start("server", envDir+"="+filepath.Join(f.dir, "store"), envPort+"="+strconv.Itoa(port))
	bustest.Eventually(t, "the server listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	for range workers {
		f.workers = append(f.workers, f.start("worker", f.through(addr), envLedger+"="+f.ledger))
	}
	for range hosts {
		f.hosts = append(f.hosts, f.start("orchestrator", f.through(addr)))
	}
	return f
}

// through puts a proxy in front of the server, and returns the setting of its address.
func (f *fleet) through(addr string) string {
	p := bustest.StartProxy(f.t, addr)
	f.proxies = append(f.proxies, p)
	return envURL + "=" + p.URL()
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
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
