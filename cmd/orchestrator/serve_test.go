package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/cmd/internal/clitest"
	"github.com/jetcrew/jetcrew/schema"
)

func TestServeSaysWhatIsWrongBeforeItStarts(t *testing.T) {
	t.Parallel()
	const file = "version: jetcrew/v1\nid: helper\nmodel: replay/none.jsonl\n"
	for name, c := range map[string]struct {
		args, want []string
	}{
		"no server":           {[]string{"serve"}, []string{"NATS_URL", "--data"}},
		"no agent file":       {[]string{"serve", "--data", "d", "-f", "other.yaml"}, []string{"other.yaml", "init"}},
		"one id twice":        {[]string{"serve", "--data", "d", "-f", "agent.yaml", "-f", "copy.yaml"}, []string{"copy.yaml", "helper", "agent.yaml"}},
		"no model":            {[]string{"serve", "--data", "d", "-f", "broken.yaml"}, []string{"none.jsonl"}},
		"no slots":            {[]string{"serve", "--slots", "0"}, []string{"--slots 0"}},
		"limit elsewhere":     {[]string{"run", "--nats", "nats://127.0.0.1:1", "--limit", "bash=1", "x"}, []string{"--limit and --rate are for embedded workers"}},
		"rate elsewhere":      {[]string{"serve", "--nats", "nats://127.0.0.1:1", "--rate", "bash=1/s"}, []string{"--limit and --rate are for embedded workers"}},
		"no drain":            {[]string{"serve", "--drain", "0s"}, []string{"--drain 0s"}},
		"detached, no server": {[]string{"run", "--detach", "x"}, []string{"NATS_URL"}},
		"detached, no agent":  {[]string{"run", "--detach", "--nats", "nats://127.0.0.1:1", "-f", "other.yaml", "x"}, []string{"other.yaml"}},
		"kept, not detached":  {[]string{"run", "--keep", "x"}, []string{"--detach"}},
		"named, not detached": {[]string{"run", "--agent", "helper", "x"}, []string{"--detach"}},
		"detached, recorded":  {[]string{"run", "--detach", "--nats", "nats://127.0.0.1:1", "--record", "x", "x"}, []string{"--record"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, "replay/RECORDING#task")
			o.write(t, "copy.yaml", strings.Replace(file, "none.jsonl", filepath.Join(o.dir, "none.jsonl"), 1))
			o.write(t, "broken.yaml", file)
			r := o.run(t, c.args...)
			wantCode(t, r, 2)
			wantInOrder(t, r.Stderr, c.want...)
		})
	}
}

// TestServeWithAServerOfItsOwn: whoever knows the address starts and follows runs.
func TestServeWithAServerOfItsOwn(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "replay/RECORDING#task")
	p := harness.Start(t, o.command("serve", "--data", "data", "--workers", "1"))
	p.Await("NATS_URL=nats://")
	p.Await("helper")
	_, rest, _ := strings.Cut(p.Output(), "NATS_URL=")
	url := strings.Fields(rest)[0]
	r := o.run(t, "run", "--detach", "--nats", url, "--json", "what do my notes say?")
	wantCode(t, r, 0)
	var started startedRun
	if err := json.Unmarshal([]byte(r.Stdout), &started); err != nil || started.Agent != "helper" || !schema.ValidID(started.Run) || r.Stderr != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	r = o.run(t, "runs", "watch", "--nats", url, started.Run)
	wantCode(t, r, 0)
	wantInOrder(t, r.Stdout, "open", "turn.1", "result 1.0  read_file", "answer.1", "close")
	p.Signal(syscall.SIGTERM)
	r = p.Wait()
	wantCode(t, r, 0)
	wantInOrder(t, r.Stderr, "run taken", started.Run, "agent=helper", "run closed", started.Run, "state=done")
}

// TestDetachedRunWaits: a run whose agent nobody serves is queued, and the user is told so.
func TestDetachedRunWaits(t *testing.T) {
	t.Parallel()
	w := newTown(t, 0)
	r := w.run(t, "run", "--detach", "--nats", w.srv.URL(), "--agent", "helper", "-q", "1 hello")
	wantCode(t, r, 0)
	run := strings.TrimSpace(r.Stdout)
	wantInOrder(t, r.Stderr, "nobody has taken the run", "helper", "serve")
	w.serve("late")
	w.check(1, run)
}

// TestKeptRunIsToldMore: a detached run that is kept answers what it is told by anybody until it is closed, whoever
// serves.
func TestKeptRunIsToldMore(t *testing.T) {
	t.Parallel()
	w := newTown(t, 0)
	first := w.serve("first")
	r := w.run(t, "run", "--detach", "--nats", w.srv.URL(), "--keep", "hello")
	wantCode(t, r, 0)
	run := strings.Fields(r.Stdout)[1]
	wantInOrder(t, r.Stdout, "run "+run+" of agent helper", "runs watch "+run, "runs say "+run, "runs close "+run, "runs stop "+run)
	w.await(run, schema.AnswerKey(1))
	first.Await("run parked")
	first.Signal(syscall.SIGTERM)
	wantCode(t, first.Wait(), 0)
	wantCode(t, w.run(t, "runs", "say", "--nats", w.srv.URL(), run, "and more"), 0)
	second := w.serve("second")
	w.await(run, schema.AnswerKey(2))
	second.Await("run parked")
	wantCode(t, w.run(t, "runs", "close", "--nats", w.srv.URL(), run), 0)
	facts := w.closed(run)
	var end schema.Close
	if err := schema.Decode(facts[len(facts)-1].Data, &end); err != nil || end.State != string(schema.ReasonDone) || end.Turns != 2 {
		t.Errorf("close %+v, %v", end, err)
	}
}

// TestD20StopReachesADetachedRun: a stop from elsewhere ends the call of a run that another process works on.
func TestD20StopReachesADetachedRun(t *testing.T) {
	t.Parallel()
	w := newTown(t, 0)
	first := w.serve("first")
	run, gates := w.start(1, "run book 1")
	w.reached(gates...)
	wantCode(t, w.run(t, "runs", "stop", "--nats", w.srv.URL(), run), 0)
	facts := w.closed(run)
	for _, err := range bustest.Check(facts) {
		t.Error(err)
	}
	var r schema.Result
	for _, f := range facts {
		if f.Key == schema.ResultKey(1, 1, "town") && (schema.Decode(f.Data, &r) != nil || r.OK || r.Error.Type != schema.Cancelled) {
			t.Errorf("the call under way: %+v", r)
		}
	}
	first.Await("state=stopped")
}

// TestStopOfARunThatNobodyServes: an orchestrator that comes later and does not know the agent closes the run all the same,
// without its model and its tools.
func TestStopOfARunThatNobodyServes(t *testing.T) {
	t.Parallel()
	w := newTown(t, 0)
	run := schema.NewID()
	if err := w.bus.StartRun(w.t.Context(), &schema.Call{Run: run, Tool: "ghost", Args: `{"task":"haunt"}`}); err != nil {
		t.Fatal(err)
	}
	at := []string{"--nats", w.srv.URL(), run}
	wantInOrder(t, w.run(t, append([]string{"runs", "show"}, at...)...).Stdout, run, "queued")
	wantCode(t, w.run(t, append([]string{"runs", "stop"}, at...)...), 0)
	w.serve("other")
	facts := w.closed(run)
	for _, err := range bustest.Check(facts) {
		t.Error(err)
	}
	var end schema.Close
	if err := schema.Decode(facts[len(facts)-1].Data, &end); err != nil || end.State != "stopped" || end.Turns != 0 {
		t.Errorf("close %+v, %v", end, err)
	}
	wantInOrder(t, w.run(t, append([]string{"runs", "show"}, at...)...).Stdout, run, "stopped")
}

// TestDetachedRunIsOneTrace: the spans of two owners belong to one trace, and the log names it.
func TestDetachedRunIsOneTrace(t *testing.T) {
	t.Parallel()
	c := clitest.NewCollector(t)
	w := newTown(t, 0)
	start := func(instance string) *harness.Process {
		cmd := w.command("serve", "--nats", w.srv.URL(), "--instance", instance)
		cmd.Env = c.Env()
		p := harness.Start(t, cmd)
		p.Await("orchestrator " + instance)
		return p
	}
	first := start("first")
	run, gates := w.start(1, "ask 2")
	w.reached(gates...)
	second := start("second")
	for _, p := range []*harness.Process{first, second} {
		p.Signal(syscall.SIGTERM)
		if p == first {
			w.check(1, run)
		}
		r := p.Wait()
		wantCode(t, r, 0)
		wantInOrder(t, r.Stderr, "run taken", run, "trace_id=")
	}
	traces := map[string]int{}
	agents := 0
	for _, s := range c.Spans() {
		traces[s.Trace]++
		if strings.HasPrefix(s.Name, "invoke_agent ") {
			agents++
		}
	}
	if len(traces) != 1 || agents != 2 {
		t.Errorf("%d traces, %d spans of owners; want 1 and 2", len(traces), agents)
	}
}

// TestEmbeddedWorkersKeepToALimit: the workers of an embedded server are bounded as those of one's own are, at each start as it says.
func TestEmbeddedWorkersKeepToALimit(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "replay/RECORDING#task")
	for _, limit := range []int{1, 2} {
		p := harness.Start(t, o.command("serve", "--data", "data", "--workers", "2", "--limit", fmt.Sprintf("bash=%d", limit), "--rate", "*_files=9/s"))
		p.Await("NATS_URL=")
		_, url, _ := strings.Cut(p.Output(), "NATS_URL=")
		r := o.run(t, "tools", "list", "--nats", strings.Fields(url)[0])
		wantCode(t, r, 0)
		wantInOrder(t, r.Stdout, "files", "shell-bash", "bash", fmt.Sprintf("%d, at most %d", 2*limit, limit))
		p.Signal(syscall.SIGTERM)
		wantCode(t, p.Wait(), 0)
	}
	r := o.run(t, "run", "--limit", "bsh=1", "x")
	wantCode(t, r, 1)
	wantInOrder(t, r.Stderr, `limit of "bsh": no tool of that name is served here`)
}
