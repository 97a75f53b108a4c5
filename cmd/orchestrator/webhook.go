package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/jetcrew/jetcrew/loop"
)

const (
	announceWithin = 10 * time.Second // for one announcement
	announceAtOnce = 8                // announcements under way; more are left out, and logged
)

// webhook tells an address of calls that wait for an approval. It is a courtesy: what waits stands in the facts, and an
// announcement that fails is logged and not sent again.
type webhook struct {
	url   string
	log   *slog.Logger
	turn  chan struct{} // holds a token for each announcement under way
	tasks sync.WaitGroup
}

// announcement is what is posted. It has no arguments: they may be secret, and `approvals show` has them.
type announcement struct {
	Type      string `json:"type"` // approval_requested
	Run       string `json:"run"`
	Call      string `json:"call"` // turn.index
	Ask       int    `json:"ask"`
	Tool      string `json:"tool"`
	Queue     string `json:"queue"`
	Rule      string `json:"rule,omitempty"`
	Why       string `json:"why,omitempty"`
	Digest    string `json:"digest"`
	ExpiresMS int64  `json:"expires_ms"`
}

// newWebhook returns nil for no address.
func newWebhook(address string, log *slog.Logger) (*webhook, error) {
	if address == "" {
		return nil, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("--approval-webhook: want an address such as https://example.com/approvals")
	}
	return &webhook{url: address, log: log, turn: make(chan struct{}, announceAtOnce)}, nil
}

// event announces a question. It does not block.
func (w *webhook) event(e loop.Event) {
	if w == nil || e.Type != loop.EventApprovalRequested {
		return
	}
	a := announcement{
		Type: string(e.Type), Run: e.Run, Call: fmt.Sprintf("%d.%d", e.Turn, e.Call.Index), Ask: e.Approval.Ask, Tool: e.Call.Tool, Queue: e.Call.Queue,
		Rule: e.Approval.Rule, Why: e.Approval.Why, Digest: e.Approval.Digest, ExpiresMS: e.Approval.ExpiresMS,
	}
	select {
	case w.turn <- struct{}{}:
	default:
		w.log.Warn("approval not announced: too many at once", "run", a.Run, "call", a.Call)
		return
	}
	w.tasks.Go(func() {
		defer func() { <-w.turn }()
		if err := w.post(a); err != nil {
			w.log.Warn("approval not announced", "run", a.Run, "call", a.Call, "error", err)
		}
	})
}

func (w *webhook) post(a announcement) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), announceWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the address answers %s", resp.Status)
	}
	return nil
}

// wait returns when nothing is under way any more, which takes at most announceWithin.
func (w *webhook) wait() {
	if w != nil {
		w.tasks.Wait()
	}
}
