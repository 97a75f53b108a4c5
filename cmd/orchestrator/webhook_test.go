package main

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

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
