package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jetcrew/jetcrew/bus/bustest/harness"
)

// provider speaks chat completions on 127.0.0.1: it streams its answers one after the other.
type provider struct {
	*httptest.Server
	mu       sync.Mutex
	answers  []string // deltas, JSON
	requests []string // bodies
	status   int      // 0: the answers
}

func newProvider(t *testing.T, answers ...string) *provider {
	p := &provider{answers: answers}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // a broken request shows in what the test wants of it
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, string(body))
	if p.status != 0 {
		w.WriteHeader(p.status)
		fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s","code":"invalid_api_key"}}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		return
	}
	delta := p.answers[min(len(p.requests), len(p.answers))-1]
	if !strings.Contains(string(body), `"stream":true`) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"model":"local","choices":[{"index":0,"finish_reason":"stop","message":%s}]}`, delta)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	finish := "stop"
	if strings.Contains(delta, "tool_calls") {
		finish = "tool_calls"
	}
	fmt.Fprintf(w, "data: {\"model\":\"local\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
	fmt.Fprintf(w, "data: {\"model\":\"local\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", finish)
}

func TestRunWithAnOpenAICompatibleModel(t *testing.T) {
	t.Parallel()
	p := newProvider(t,
		`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"read_file","arguments":"{\"path\": \"note.txt\"}"}}]}`,
		`{"content":"You want milk."}`)
	o := newOffice(t, "openai/local")
	o.write(t, ".env", "OPENAI_BASE_URL="+p.URL+"\n")
	r := o.run(t, "run", "what do my notes say?")
	wantCode(t, r, 0)
	wantInOrder(t, r.Stdout, "memory  1.0 read_file: buy milk", "You want milk.")
	if len(p.requests) != 2 {
		t.Fatalf("%d requests, want 2", len(p.requests))
	}
	var second struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal([]byte(p.requests[1]), &second); err != nil {
		t.Fatal(err)
	}
	if last := second.Messages[len(second.Messages)-1]; last.Role != "tool" || last.Content != "buy milk\n" {
		t.Errorf("the model saw %+v last, want the output of the tool", last)
	}
}

// TestD14RunIsCompacted: the model sees the summary in place of the first turn, the recording has all of them.
func TestD14RunIsCompacted(t *testing.T) {
	t.Parallel()
	read := func(args string) string {
		return fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"read_file","arguments":%q}}]}`, args)
	}
	p := newProvider(t, read(`{"path": "note.txt"}`), read(`{"path": "none.txt"}`), `{"content":"The note says: buy milk."}`, `{"content":"You want milk."}`)
	o := newOffice(t, "openai/local", "tools: [read_file]", "session: {compaction: {strategy: summary, trigger: {maxTurns: 2}, preserve: 1}}")
	o.write(t, ".env", "OPENAI_BASE_URL="+p.URL+"\n")
	r := o.run(t, "run", "--record", "out.jsonl", "what do my notes say?")
	wantCode(t, r, 0)
	wantInOrder(t, r.Stdout, "memory  2.0 read_file", "compact turns 1 to 1, summary", "You want milk.")
	if len(p.requests) != 4 {
		t.Fatalf("%d requests, want 4", len(p.requests))
	}
	if last := p.requests[3]; strings.Contains(last, "note.txt") || !strings.Contains(last, "none.txt") || !strings.Contains(last, "The note says: buy milk.") {
		t.Errorf("the last request is %s", last)
	}
	recorded, err := os.ReadFile(filepath.Join(o.dir, "out.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	wantInOrder(t, string(recorded), "note.txt", "buy milk", "none.txt", "You want milk.")
	wantCode(t, o.run(t, "replay", "out.jsonl"), 0)
}

func TestRunWithARefusedKeyFailsAndKeepsItSecret(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	p.status = http.StatusUnauthorized
	c := newOffice(t, "openai/local").command("run", "x")
	c.Env = []string{"OPENAI_BASE_URL=" + p.URL, "OPENAI_API_KEY=sk-very-secret-key-0123456789"}
	r := harness.Run(t, c)
	wantCode(t, r, 1)
	wantInOrder(t, r.Stdout, "error:", "401", "ended: model auth")
	if strings.Contains(r.Stdout+r.Stderr, "very-secret") {
		t.Errorf("the key is in the output:\n%s%s", r.Stdout, r.Stderr)
	}
	if len(p.requests) != 1 {
		t.Errorf("%d requests, want 1: asking again does not mend a key", len(p.requests))
	}
}
