// Package nodeworker_test runs the worker in JavaScript against the bus of this module: it was written from
// docs/wire.md alone, so that what works here works from the document.
package nodeworker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/embedded"
	"github.com/jetcrew/jetcrew/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const queue = "node"

// install makes the worker's packages exist, once for all tests.
var install = sync.OnceValue(func() error {
	if _, err := os.Stat("node_modules"); err == nil {
		return nil
	}
	out, err := exec.Command("npm", "ci", "--no-audit", "--no-fund").CombinedOutput()
	if err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return nil
})

func setUp(t *testing.T) (*embedded.Server, *bus.Bus) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed; the worker in JavaScript needs it", program)
		}
	}
	if err := install(); err != nil {
		t.Fatal(err)
	}
	srv, err := embedded.Start(embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	b, err := bus.Connect(t.Context(), bus.Config{URL: srv.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return srv, b
}

// process is a running worker.
type process struct {
	cmd      *exec.Cmd
	instance string
	stop     func() error // SIGTERM, then its exit
}

// start runs a worker and returns when it serves.
func start(t *testing.T, srv *embedded.Server, env ...string) *process {
	t.Helper()
	cmd := exec.Command("node", "worker.mjs")
	cmd.Env = append(os.Environ(), append(env, "NATS_URL="+srv.URL())...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	log := bufio.NewReader(stderr)
	serving, err := readLine(log, "serving")
	read := make(chan struct{})
	go func() {
		defer close(read)
		rest, _ := io.ReadAll(log)
		if len(rest) > 0 {
			t.Logf("worker: %s", rest)
		}
	}()
	p := &process{cmd: cmd, instance: serving["instance"]}
	p.stop = sync.OnceValue(func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended already; Wait tells
		<-read
		return cmd.Wait()
	})
	t.Cleanup(func() {
		if err := p.stop(); err != nil && cmd.ProcessState.ExitCode() > 0 {
			t.Errorf("worker: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// readLine reads log lines until one has the message.
func readLine(log *bufio.Reader, message string) (map[string]string, error) {
	for {
		text, err := log.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("worker ended before %q: %w: %s", message, err, text)
		}
		var raw map[string]any
		if json.Unmarshal([]byte(text), &raw) != nil || raw["message"] != message {
			continue
		}
		line := map[string]string{}
		for k, v := range raw {
			line[k] = fmt.Sprint(v)
		}
		return line, nil
	}
}

func call(run, tool string, index int, args string) *schema.Call {
	return &schema.Call{
		Run: run, Turn: 1, Index: index, Label: fmt.Sprintf("c%d", index), Tool: tool, Args: schema.JSONText(args),
		Idempotent: tool == "text_stats",
	}
}

func dispatch(t *testing.T, b *bus.Bus, c *schema.Call, within time.Duration) schema.Result {
	t.Helper()
	r, err := b.Dispatch(t.Context(), c, queue, within)
	if err != nil {
		t.Errorf("%s: %v", c, err)
	}
	return r
}

func kinds(t *testing.T, b *bus.Bus, run string) map[schema.Kind]int {
	t.Helper()
	facts, err := b.Facts(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := map[schema.Kind]int{}
	for _, f := range facts {
		count[f.Key.Kind]++
	}
	return count
}

func TestNodeWorker(t *testing.T) {
	t.Parallel()
	srv, b := setUp(t)
	p := start(t, srv)

	t.Run("announces itself", func(t *testing.T) {
		sel := b.Select("text_stats", "counter")
		if err := sel.Wait(t.Context(), 10*time.Second); err != nil {
			t.Fatal(err)
		}
		tools, err := sel.Tools(t.Context())
		if err != nil || len(tools) != 2 || tools[0].Idempotent || !tools[1].Idempotent || tools[0].Queue != queue {
			t.Errorf("%+v, %v", tools, err)
		}
		if w := b.Catalog().Workers(); len(w) != 1 || w[0].Instance != p.instance || w[0].Slots != 4 {
			t.Errorf("workers: %+v", w)
		}
	})
	t.Run("runs an idempotent call without a begin", func(t *testing.T) {
		run := schema.NewID()
		r := dispatch(t, b, call(run, "text_stats", 0, `{"text":"héllo fleet\nbye"}`), 10*time.Second)
		if !r.OK || r.Output != `{"characters":15,"words":3,"lines":2}` {
			t.Errorf("%+v", r)
		}
		if r.Worker != p.instance || r.Delivery != 1 || r.StartedMS == 0 || r.EndedMS < r.StartedMS {
			t.Errorf("result says too little: %+v", r)
		}
		if diff := cmp.Diff(map[schema.Kind]int{schema.KindResult: 1}, kinds(t, b, run)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("begins a run-once call", func(t *testing.T) {
		run := schema.NewID()
		r := dispatch(t, b, call(run, "counter", 0, `{"name":"once"}`), 10*time.Second)
		if !r.OK || r.Output != `{"name":"once","value":1}` {
			t.Errorf("%+v", r)
		}
		if diff := cmp.Diff(map[schema.Kind]int{schema.KindResult: 1, schema.KindBegin: 1}, kinds(t, b, run)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("refuses bad arguments in a result", func(t *testing.T) {
		for i, args := range []string{`{}`, `{"text":7}`} {
			r := dispatch(t, b, call(schema.NewID(), "text_stats", i, args), 10*time.Second)
			if r.OK || r.Error.Type != schema.InvalidArguments || !strings.HasPrefix(r.Output, "TOOL_ERROR: {") {
				t.Errorf("%s: %+v", args, r)
			}
		}
	})
	t.Run("refuses what is in the object store", func(t *testing.T) {
		for i, tool := range []string{"text_stats", "counter"} {
			r := dispatch(t, b, call(schema.NewID(), tool, i, `{"text":"`+strings.Repeat("x", 300<<10)+`"}`), 10*time.Second)
			if r.OK || r.Error.Type != schema.TooLarge || r.Worker != p.instance {
				t.Errorf("%s: %+v", tool, r)
			}
		}
	})
	t.Run("takes JSON by hand", func(t *testing.T) { callByHand(t, srv) })
	t.Run("ends a call at its deadline", func(t *testing.T) {
		r := dispatch(t, b, call(schema.NewID(), "counter", 0, `{"name":"slow","steps":1000,"pause_ms":100}`), time.Second)
		if r.OK || r.Error.Type != schema.Timeout || r.Worker != p.instance || r.StartedMS == 0 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("keeps a call beyond AckWait", func(t *testing.T) {
		r := dispatch(t, b, call(schema.NewID(), "counter", 0, `{"name":"long","steps":2,"pause_ms":7000}`), 30*time.Second)
		if !r.OK || r.Output != `{"name":"long","value":2}` || r.Delivery != 1 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("reports progress and hears a cancel", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ctx = schema.WithProgress(ctx, func(text string) {
			if text == "stopped is 2" {
				cancel()
			}
		})
		r, err := b.Dispatch(ctx, call(schema.NewID(), "counter", 0, `{"name":"stopped","steps":1000,"pause_ms":50}`), queue, time.Minute)
		if err != nil || r.OK || r.Error.Type != schema.Cancelled || r.Worker != p.instance {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("buries what is no call and goes on", func(t *testing.T) { buryHostile(t, srv, b) })
	t.Run("drains on SIGTERM", func(t *testing.T) {
		var wg sync.WaitGroup
		begun := make(chan struct{})
		started := sync.OnceFunc(func() { close(begun) })
		ctx := schema.WithProgress(t.Context(), func(string) { started() })
		wg.Go(func() {
			r, err := b.Dispatch(ctx, call(schema.NewID(), "counter", 0, `{"name":"last","steps":5,"pause_ms":100}`), queue, time.Minute)
			if err != nil || !r.OK || r.Output != `{"name":"last","value":5}` {
				t.Errorf("the running call: %+v, %v", r, err)
			}
		})
		<-begun
		if err := p.stop(); err != nil {
			t.Errorf("exit: %v", err)
		}
		wg.Wait()
		for len(b.Catalog().Workers()) > 0 {
			if _, change := b.Catalog().Changes(); len(b.Catalog().Workers()) > 0 {
				<-change
			}
		}
	})
}

// callByHand publishes a call as somebody would at a terminal and reads the result as anybody could.
func callByHand(t *testing.T, srv *embedded.Server) {
	nc, err := nats.Connect(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for i, args := range []string{`{"text":"a b"}`, `"{\"text\":\"a b\"}"`} {
		sub, err := nc.SubscribeSync(fmt.Sprintf("jc.live.hand.result.1.%d.node", i))
		if err != nil {
			t.Fatal(err)
		}
		body := fmt.Sprintf(`{"run":"hand","turn":1,"index":%d,"tool":"text_stats","idempotent":true,"args":%s}`, i, args)
		if err := nc.Publish("jc.work.node.0", []byte(body)); err != nil {
			t.Fatal(err)
		}
		m, err := sub.NextMsg(10 * time.Second)
		if err != nil {
			t.Fatalf("args %s: %v", args, err)
		}
		if r, err := schema.DecodeResult(m.Data); err != nil || !r.OK || r.Output != `{"characters":3,"words":2,"lines":1}` {
			t.Errorf("args %s: %+v, %v", args, r, err)
		}
	}
}

func buryHostile(t *testing.T, srv *embedded.Server, b *bus.Bus) {
	nc, err := nats.Connect(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	dead, err := nc.SubscribeSync("jc.dead.node")
	if err != nil {
		t.Fatal(err)
	}
	for _, hostile := range []string{"\xdd\xff\xff\xff\xff", "{", "\xc1", `{"v":2,"run":"r","turn":1,"index":0,"tool":"t"}`, `{"run":"a.b","turn":1,"index":0,"tool":"t"}`} {
		if err := nc.Publish("jc.work.node.0", []byte(hostile)); err != nil {
			t.Fatal(err)
		}
		m, err := dead.NextMsg(10 * time.Second)
		if err != nil {
			t.Fatalf("%q: %v", hostile, err)
		}
		var letter bus.DeadLetter
		if err := schema.Decode(m.Data, &letter); err != nil || string(letter.Data) != hostile || letter.Queue != queue || letter.Reason == "" {
			t.Errorf("%q: %+v, %v", hostile, letter, err)
		}
	}
	if r := dispatch(t, b, call(schema.NewID(), "text_stats", 0, `{"text":""}`), 10*time.Second); !r.OK {
		t.Errorf("after hostile messages: %+v", r)
	}
}
