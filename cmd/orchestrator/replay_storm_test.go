package main

import (
	"encoding/json"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/cmd/internal/playback"
	"github.com/jetcrew/jetcrew/cmd/internal/worker"
	"github.com/jetcrew/jetcrew/loop/model/replay"
)

var stormLong = flag.Bool("storm.long", false, "replay all recorded conversations in the storm: minutes instead of seconds")

// storm is a replay of transcripts while its processes are killed and started again.
type storm struct {
	files    []string
	first    int // that many transcripts; 0: all
	parallel int
	delay    string // of a call

	killWorker, killPlayer time.Duration // between two kills
	killServer             time.Duration // before each of two
	players                int           // that are killed at most; 0: any number
	workers                int           // likewise: so often, calls hardly come to their end
}

// TestReplayInAStorm: every output stays equal and in order, whoever is killed.
func TestReplayInAStorm(t *testing.T) {
	t.Parallel()
	s := storm{
		files: []string{data(t, "parallel.jsonl")}, first: 60, parallel: 4, delay: "50-100ms",
		killWorker: 300 * time.Millisecond, killPlayer: 4 * time.Second, killServer: 3 * time.Second, players: 2, workers: 30,
	}
	if *stormLong {
		s = storm{
			files: []string{data(t, "airline.jsonl"), data(t, "parallel.jsonl")}, parallel: 4, delay: "50-150ms",
			killWorker: 300 * time.Millisecond, killPlayer: 15 * time.Second, killServer: 20 * time.Second,
		}
	}
	g := newGale(t, s)
	g.blow()
	g.check()
}

// gale is a storm that blows.
type gale struct {
	*testing.T
	storm
	list   []replay.Transcript
	server *harness.Servers
	mocks  []*harness.Process
	player *harness.Process
	killed struct{ workers, players, servers int }
}

func newGale(t *testing.T, s storm) *gale {
	t.Helper()
	list, err := worker.Transcripts(s.files...)
	if err != nil {
		t.Fatal(err)
	}
	if s.first > 0 {
		list = list[:s.first]
	}
	g := &gale{T: t, storm: s, list: list, server: harness.StartServers(t, 1)}
	for range 3 {
		g.mocks = append(g.mocks, g.mock())
	}
	return g
}

func (g *gale) mock() *harness.Process {
	args := append([]string{"worker", "mock", "--nats", g.server.URL(), "--attempts", "100", "--delay", g.delay, "--"}, g.files...)
	return harness.Start(g, harness.Command{Program: program, Dir: os.TempDir(), Args: args})
}

// play starts the replay. It is the same command each time.
func (g *gale) play() *harness.Process {
	args := []string{"replay", "--nats", g.server.URL(), "--runs", "storm", "--json", "--parallel", strconv.Itoa(g.parallel)}
	for i := range g.list {
		if g.first > 0 {
			args = append(args, "--id="+g.list[i].ID)
		}
	}
	return harness.Start(g, harness.Command{Program: program, Dir: os.TempDir(), Args: append(append(args, "--"), g.files...)})
}

// blow kills processes until the replay has come to its end.
func (g *gale) blow() {
	workers, players, servers := time.NewTicker(g.killWorker), time.NewTicker(g.killPlayer), time.NewTicker(g.killServer)
	defer workers.Stop()
	defer players.Stop()
	defer servers.Stop()
	g.player = g.play()
	for {
		select {
		case <-g.player.Ended():
			r := g.player.Wait()
			if strings.Contains(r.Stdout, `"summary"`) {
				return // what it says is compared again by check
			}
			g.Logf("not begun, as when the server was away: exit %d, %s", r.Code, r.Stderr)
			g.player = g.play()
		case <-workers.C:
			if g.killMock(); g.storm.workers > 0 && g.killed.workers >= g.storm.workers {
				workers.Stop()
			}
		case <-players.C:
			g.player.Signal(os.Kill)
			g.player.Wait()
			if g.killed.players++; g.killed.players == g.storm.players {
				players.Stop()
			}
			g.player = g.play()
		case <-servers.C:
			g.server.Restart(0)
			if g.killed.servers++; g.killed.servers == 2 {
				servers.Stop()
			}
		}
	}
}

// killMock kills the mock that lives longest, provided it serves already.
func (g *gale) killMock() {
	p := g.mocks[0]
	select {
	case <-p.Ended():
		g.Logf("a worker did not begin, as when the server was away: %+v", p.Wait())
	default:
		if !strings.Contains(p.Output(), "queue mock") {
			return
		}
		p.Signal(os.Kill)
		p.Wait()
		g.killed.workers++
	}
	g.mocks = append(g.mocks[1:], g.mock())
}

// check has the runs compared once more by a process that finds all of them closed, and looks at their facts itself.
func (g *gale) check() {
	last := g.player.Wait()
	g.Logf("killed: %+v; %s", g.killed, lastLine(last.Stdout))
	if g.killed.workers < 10 || g.killed.players < 2 || g.killed.servers < 2 {
		g.Error("the storm was too short")
	}
	g.player = g.play()
	again := g.player.Wait()
	for _, r := range []harness.Result{last, again} {
		g.wantExact(r)
	}
	g.checkFacts()
}

func (g *gale) wantExact(r harness.Result) {
	g.Helper()
	var s replaySummary
	if err := json.Unmarshal([]byte(lastLine(r.Stdout)), &s); err != nil {
		g.Fatal(err)
	}
	calls := 0
	for i := range g.list {
		for n := range g.list[i].Turns() {
			calls += len(g.list[i].Calls(n + 1))
		}
	}
	if r.Code != 0 || s.Transcripts != len(g.list) || s.Resumed == 0 || s.Calls != calls || s.Different+s.Failed > 0 {
		g.Errorf("exit %d, %+v, want %d transcripts, %d calls\n%s\n%s", r.Code, s, len(g.list), calls, r.Stdout, r.Stderr)
	}
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndex(text, "\n")+1:]
}

// checkFacts reads every run as an orchestrator would.
func (g *gale) checkFacts() {
	b, err := bus.Connect(g.Context(), bus.Config{URL: g.server.URL()})
	if err != nil {
		g.Fatal(err)
	}
	defer b.Close()
	for i := range g.list {
		id, err := playback.RunID("storm", &g.list[i])
		if err != nil {
			g.Fatal(err)
		}
		facts, err := b.Facts(g.Context(), id, 0)
		if err != nil {
			g.Fatal(err)
		}
		for _, wrong := range bustest.Check(facts) {
			g.Errorf("%s, run %s: %v", g.list[i].ID, id, wrong)
		}
	}
}
