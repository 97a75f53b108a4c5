package main

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/loop"
)

func TestWebhookAnnounces(t *testing.T) {
	t.Parallel()
	got := make(chan map[string]any, 4)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m map[string]any
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || r.Method != http.MethodPost {
			t.Errorf("%s: %v", r.Method, err)
		}
		got <- m
		w.WriteHeader(http.StatusInternalServerError) // which is logged, and not tried again
	}))
	defer srv.Close()
	w, err := newWebhook(srv.URL, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	w.event(loop.Event{Type: loop.EventToolCall, Call: &loop.CallInfo{}})
	w.event(loop.Event{
		Type: loop.EventApprovalRequested, Run: "r", Turn: 2, Call: &loop.CallInfo{Index: 1, Tool: "pay", Queue: "bank", Args: `{"card":"4711"}`},
		Approval: &loop.ApprovalInfo{Ask: 1, Digest: "d", Rule: "p", Why: "money", ExpiresMS: 7},
	})
	w.wait()
	close(got)
	want := map[string]any{
		"type": "approval_requested", "run": "r", "call": "2.1", "ask": 1.0, "tool": "pay", "queue": "bank", "rule": "p", "why": "money",
		"digest": "d", "expires_ms": 7.0,
	}
	n := 0
	for m := range got {
		n++
		if diff := cmp.Diff(want, m); diff != "" {
			t.Error(diff)
		}
	}
	if n != 1 {
		t.Errorf("%d announcements", n)
	}
	for _, bad := range []string{"example.com", "ftp://example.com", "http://"} {
		if _, err := newWebhook(bad, nil); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if w, err := newWebhook("", nil); w != nil || err != nil {
		t.Error("no address is one")
	}
}

// TestServeAnnouncesApprovals: of a run that nobody watches a call waits, and who is told of it lets it run.
func TestServeAnnouncesApprovals(t *testing.T) {
	t.Parallel()
	told := make(chan announcement, 8)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var a announcement
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			t.Error(err)
		}
		told <- a
	}))
	defer hook.Close()
	g := newGoverned(t)
	p := harness.Start(t, g.command("serve", "-f", g.file("agent.yaml"), "-f", g.file("reviewer.yaml"), "--approval-webhook", hook.URL))
	p.Await("slots: clerk")
	r := g.run("run", "--detach", "-q", "--agent", "clerk", "Note what go.mod says.")
	wantCode(t, r, 0)
	run := strings.TrimSpace(r.Stdout)
	select {
	case a := <-told:
		if a.Run != run || a.Call != "2.0" || a.Tool != "write_file" || a.Queue != "files" || a.Digest == "" || a.ExpiresMS == 0 {
			t.Errorf("announced %+v", a)
		}
		wantCode(t, g.run("approvals", "approve", a.Run, a.Call, "--as", "ada"), 0)
	case <-time.After(time.Minute):
		t.Fatalf("nothing was announced: %s", p.Output())
	}
	wantInOrder(t, g.run("runs", "watch", run).Stdout, "approve by ada", "subagent_reviewer", "answer.1")
	p.Signal(syscall.SIGTERM)
	wantCode(t, p.Wait(), 0)
	for len(told) > 0 { // whoever goes on with the run may say again what waits, and nothing else
		if a := <-told; a.Run != run || a.Call != "2.0" {
			t.Errorf("announced %+v", a)
		}
	}
}
