package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/schema"
)

// alone fails when another one runs at the same time: only one of them can make the directory.
const alone = `{"command":"mkdir only || exit 9; echo in; rmdir only"}`

// TestLimitOfATool: a tool with a limit has a queue of its own, and its calls keep to it over all workers. Who says another
// limit does not start; the limit can be changed on purpose.
func TestLimitOfATool(t *testing.T) {
	t.Parallel()
	srv, b := connect(t)
	dir := t.TempDir()
	line := []string{"serve", "--queue", "files", "--queue", "shell=4", "--root", dir, "--limit", "bash=1", "--limit", "list_files=9"}
	for range 2 {
		w := startWorker(t, srv, nil, line...)
		w.Await("queue files-list_files, 4 slots, 9 at once over all workers: list_files")
		w.Await("queue shell-bash, 1 slots, 1 at once over all workers: bash")
	}
	bash := tool(t, b, "bash")
	if others := tool(t, b, "read_file"); bash.Queue != "shell-bash" || others.Queue != "files" {
		t.Errorf("queues %s and %s", bash.Queue, others.Queue)
	}
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			r, err := b.Invoke(t.Context(), bash, alone, schema.Principal{}, time.Minute)
			if err != nil || !r.OK {
				t.Errorf("call %d: %+v, %v", i, r, err)
			}
		})
	}
	all.Wait()
	other := []string{"serve", "--queue", "shell=4", "--root", dir, "--limit", "bash=2"}
	r := startWorker(t, srv, nil, other...).Wait()
	if r.Code != 1 || !strings.Contains(r.Stderr, "max_ack_pending is 1, want 2") || !strings.Contains(r.Stderr, "toolworker limit shell-bash 2") {
		t.Errorf("%+v", r)
	}
	for _, c := range []struct{ args, want string }{
		{"limit shell-bash", "queue shell-bash: 1 at once over all workers\n"},
		{"limit shell-bash 2", "queue shell-bash: 2 at once over all workers, before 1 at once over all workers\n"},
		{"limit shell-bash none", "queue shell-bash: no limit, before 2 at once over all workers\n"},
	} {
		r := harness.Run(t, harness.Command{Program: program, Args: strings.Fields(c.args), Env: []string{"NATS_URL=" + srv.URL()}})
		if r.Code != 0 || r.Stdout != c.want {
			t.Errorf("%s: %+v, want %q", c.args, r, c.want)
		}
	}
}

// TestRateOfATool: what comes too often is refused, and says when to come again.
func TestRateOfATool(t *testing.T) {
	t.Parallel()
	srv, b := connect(t)
	startWorker(t, srv, nil, "serve", "--queue", "shell", "--root", t.TempDir(), "--rate", "ba*=2/h:2")
	bash := tool(t, b, "bash")
	for i, ok := range []bool{true, true, false} {
		r, err := b.Invoke(t.Context(), bash, `{"command":"echo in"}`, schema.Principal{}, time.Minute)
		if err != nil || r.OK != ok || !ok && (r.Error.Type != schema.RateLimited || !strings.Contains(r.Error.Message, "try again in")) {
			t.Errorf("call %d: %+v, %v", i, r, err)
		}
	}
}

// TestBoundsOfAServersTool: the file of MCP servers says them too.
func TestBoundsOfAServersTool(t *testing.T) {
	t.Parallel()
	srv, b := connect(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mcp.json")
	config := `{"mcpServers":{"shop":{"command":"` + self + `","args":["` + mcpServerArg + `"],"tools":{"status":{"effect":"read","limit":3,"rate":"1/h"}}}}}`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	startWorker(t, srv, nil, "serve", "--mcp-config", file).Await("queue mcp-shop-shop_status, 3 slots, 3 at once over all workers: shop_status")
	status := tool(t, b, "shop_status")
	for i, ok := range []bool{true, false} {
		r, err := b.Invoke(t.Context(), status, `{"id":"7"}`, schema.Principal{}, 20*time.Second)
		if err != nil || r.OK != ok || !ok && r.Error.Type != schema.RateLimited {
			t.Errorf("call %d: %+v, %v", i, r, err)
		}
	}
}

// TestLimitOfAServerThatChanges: when a server gets another tool, that is served, and the limited one stays on its queue.
func TestLimitOfAServerThatChanges(t *testing.T) {
	t.Parallel()
	srv, b := connect(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	startWorker(t, srv, nil, "serve", "--mcp", "shop='"+self+"' "+mcpServerArg+" "+mcpGrows, "--limit", "shop_status=1")
	for _, want := range []struct{ tool, queue string }{
		{"shop_grow", "mcp-shop"}, {"shop_fresh", "mcp-shop"}, {"shop_status", "mcp-shop-shop_status"},
	} {
		d := tool(t, b, want.tool) // fresh comes when grow was called
		if d.Queue != want.queue {
			t.Errorf("%s is on the queue %s, want %s", want.tool, d.Queue, want.queue)
		}
		if r, err := b.Invoke(t.Context(), d, `{"id":"7"}`, schema.Principal{}, 20*time.Second); err != nil || !r.OK {
			t.Errorf("%s: %+v, %v", want.tool, r, err)
		}
	}
}
