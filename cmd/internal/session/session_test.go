package session_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/embedded"
	"github.com/jetcrew/jetcrew/cmd/internal/session"
	"github.com/jetcrew/jetcrew/schema"
)

func open(t *testing.T, opts session.Options) *session.Session {
	t.Helper()
	s, err := session.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func ended(t *testing.T, p *session.Process) {
	t.Helper()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	select {
	case <-p.Done():
	case <-late.C:
		t.Fatalf("worker %d runs on", p.PID)
	}
}

func TestSessionWithWorkersOfItsOwn(t *testing.T) {
	t.Parallel()
	s := open(t, session.Options{Fleet: []session.Member{
		{Count: 2, Args: []string{"serve", "--queue", "files=2"}},
		{Args: []string{"serve", "--queue=shell"}},
	}})
	if n := len(s.Bus.Catalog().Workers()); n != 3 {
		t.Errorf("%d workers in the catalog, want 3", n)
	}
	tools, err := s.Bus.Select("list_files").Tools(t.Context())
	if err != nil || len(tools) != 1 {
		t.Fatalf("tools %v, %v", tools, err)
	}
	r, err := s.Bus.Invoke(t.Context(), tools[0], "{}", schema.Principal{}, 30*time.Second)
	if err != nil || !r.OK {
		t.Fatalf("%+v, %v", r, err)
	}
	p := s.Fleet.Find(r.Worker)
	if p == nil || p.PID <= 0 {
		t.Errorf("the result's worker %s is no process of the fleet: %+v", r.Worker, p)
	}
	if s.Fleet.Find("nobody") != nil {
		t.Error("found a process that is not there")
	}
	s.Close()
	for _, p := range s.Fleet.Processes() {
		ended(t, p)
	}
	s.Close()
	if _, err := s.Fleet.Start(t.Context(), "serve", "--queue", "files"); err == nil {
		t.Error("a worker started on a closed session")
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	s := open(t, session.Options{})
	p, err := s.Fleet.Start(t.Context(), "serve", "--queue", "files")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	ended(t, p)
	if err := p.Kill(); err != nil {
		t.Errorf("the second time: %v", err)
	}
	p.Stop()
}

func TestWorkerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := session.Open(t.Context(), session.Options{Fleet: []session.Member{{Args: []string{"serve", "--queue", "nope"}}}})
	if err == nil || !strings.Contains(err.Error(), `toolkit "nope"`) {
		t.Errorf("error %v, want what the worker said", err)
	}
	if _, err = open(t, session.Options{}).Fleet.Start(t.Context()); err == nil {
		t.Error("a worker without a command started")
	}
}

func TestServerOfTheUsersOwn(t *testing.T) {
	t.Parallel()
	srv := server(t)
	s := open(t, session.Options{URL: srv.URL(), Fleet: []session.Member{{Args: []string{"serve", "--queue", "files"}}}})
	if n := len(s.Fleet.Processes()); n != 0 {
		t.Errorf("%d workers started", n)
	}
	_, err := session.Open(t.Context(), session.Options{URL: "nats://me:secret@127.0.0.1:1"})
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("error %v, want the address without the password", err)
	}
}

func TestOthersCannotConnectToTheEmbeddedServer(t *testing.T) {
	t.Parallel()
	srv, err := embedded.Start(embedded.Config{Token: "known-to-few"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	open, err := bus.Connect(t.Context(), bus.Config{URL: srv.URL()})
	if err != nil {
		t.Fatal(err)
	}
	open.Close()
	without := strings.Replace(srv.URL(), "known-to-few@", "", 1)
	if nc, err := nats.Connect(without); err == nil {
		nc.Close()
		t.Error("connected without the token")
	}
}

func TestWorkersEndWithTheirParent(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b, err := bus.Connect(t.Context(), bus.Config{URL: srv.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	parent := exec.Command(os.Args[0], "parent", srv.URL())
	parent.Stderr = os.Stderr
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = parent.Wait() }) // it was killed
	if err := b.Select("list_files").Wait(t.Context(), 30*time.Second); err != nil {
		_ = parent.Process.Kill() // the test fails anyway
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// A worker that drains takes itself out of the catalog; one that is merely lost stays for HeartbeatTTL.
	ctx, cancel := context.WithTimeout(t.Context(), bus.HeartbeatTTL*2/3)
	defer cancel()
	for {
		_, change := b.Catalog().Changes()
		if len(b.Catalog().Workers()) == 0 {
			return
		}
		select {
		case <-change:
		case <-ctx.Done():
			t.Fatal("the worker outlives its parent")
		}
	}
}

func server(t *testing.T) *embedded.Server {
	t.Helper()
	srv, err := embedded.Start(embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	return srv
}
