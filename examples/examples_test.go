// Package examples_test runs the examples as their readers do: as processes, against a server.
package examples_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jetcrew/jetcrew/bus/embedded"
)

// build compiles an example into a temporary directory.
func build(t *testing.T, name string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("go", "build", "-o", bin, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	return bin
}

// chat is a model server that asks for one order, then repeats what the tool said.
func chat(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	message := map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
		"id": "call_1", "type": "function", "function": map[string]any{"name": "order_status", "arguments": `{"id":"17"}`},
	}}}
	finish := "tool_calls"
	if last := req.Messages[len(req.Messages)-1]; last.Role == "tool" {
		message, finish = map[string]any{"role": "assistant", "content": "Good news: " + last.Content + "."}, "stop"
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "1", "object": "chat.completion", "model": "local",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
	})
}

func TestAgentAndWorker(t *testing.T) {
	t.Parallel()
	srv, err := embedded.Start(embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Stop()
	llm := httptest.NewServer(http.HandlerFunc(chat))
	defer llm.Close()
	env := append(os.Environ(), "NATS_URL="+srv.URL(), "OPENAI_BASE_URL="+llm.URL, "OPENAI_API_KEY=none", "MODEL=local")

	worker := exec.Command(build(t, "worker"))
	worker.Env, worker.Stderr = env, os.Stderr
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	agent := exec.Command(build(t, "agent"), "Where is order 17?")
	agent.Env = env
	out, err := agent.CombinedOutput()
	if err != nil {
		t.Errorf("agent: %v", err)
	}
	if got, want := strings.TrimSpace(string(out)), "Good news: order 17 is on its way."; got != want {
		t.Errorf("the agent says %q, want %q", got, want)
	}
	if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := worker.Wait(); err != nil {
		t.Error(fmt.Errorf("worker: %w", err))
	}
}

// TestWirings runs the wirings of sections 9.1 to 9.3 of the seed on tools and registries.
func TestWirings(t *testing.T) {
	t.Parallel()
	llm := httptest.NewServer(http.HandlerFunc(chat))
	defer llm.Close()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ ID string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Path != "/order_status" || r.Header.Get("Idempotency-Key") == "" {
			http.Error(w, "bad call", http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, "order %s is on its way", in.ID)
	}))
	defer gateway.Close()
	for _, name := range []string{"names", "guarded", "gateway"} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(build(t, name), "Where is order 17?")
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "NATS_URL=", "OPENAI_BASE_URL="+llm.URL, "OPENAI_API_KEY=none", "MODEL=local", "GATEWAY_URL="+gateway.URL)
			var log strings.Builder
			cmd.Stderr = &log
			out, err := cmd.Output()
			if got, want := strings.TrimSpace(string(out)), "Good news: order 17 is on its way."; err != nil || got != want {
				t.Errorf("it says %q, want %q: %v\n%s", got, want, err, log.String())
			}
			if name == "guarded" && !strings.Contains(log.String(), `audit: order_status {"id":"17"} ok=true`) {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}
