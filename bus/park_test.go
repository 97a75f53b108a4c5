package bus_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// company is agents that have their tasks done by others: each calls those under its name, then answers with its name
// and what they answered. One without others does work if there is any.
type company struct {
	calls  map[string][]string
	work   func(ctx context.Context, agent string) error
	keep   time.Duration
	within time.Duration // of each call
	mu     sync.Mutex
	asked  map[string]int // model requests by agent
}

func (c *company) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	c.mu.Lock()
	if c.asked == nil {
		c.asked = map[string]int{}
	}
	c.asked[req.Agent]++
	c.mu.Unlock()
	under := c.calls[req.Agent]
	if len(under) == 0 && c.work != nil {
		if err := c.work(ctx, req.Agent); err != nil {
			return nil, err
		}
	}
	var got []string
	for _, m := range req.Messages {
		if m.Role == schema.RoleTool {
			got = append(got, m.Text)
		}
	}
	if len(got) < len(under) {
		r := &model.Response{Finish: schema.FinishCalls}
		for i, name := range under {
			r.Calls = append(r.Calls, schema.RawCall{ID: fmt.Sprint(i), Name: name, Args: `{"task":"do it","context":"it is late"}`})
		}
		return r, nil
	}
	return &model.Response{Text: req.Agent + "(" + strings.Join(got, " ") + ")", Finish: schema.FinishStop}, nil
}

// tools are the agents.
func (c *company) Tools(context.Context) (tools []schema.Tool, _ error) {
	seen := map[string]bool{}
	for _, under := range c.calls {
		for _, name := range under {
			if !seen[name] {
				seen[name] = true
				tool := schema.AgentTool(schema.AgentSpec{ID: name})
				tool.TimeoutMS = c.within.Milliseconds()
				tools = append(tools, tool)
			}
		}
	}
	return tools, nil
}

// host works on the company's runs.
func (c *company) host(t *testing.T, b *bus.Bus) *loop.Host {
	t.Helper()
	return newHost(t, b, c, c, func(cfg *loop.HostConfig) {
		cfg.KeepFor = c.keep
		cfg.Find = func(name string) (schema.AgentSpec, bool) {
			spec, _ := anyAgent(name)
			return spec, name != "stranger"
		}
	})
}

// open serves the company's agents on b, some runs at a time.
func (c *company) open(t *testing.T, b *bus.Bus, slots int) {
	t.Helper()
	hosted(t, b, bus.Hosting{Slots: slots, Host: c.host(t, b)})
}

func start(t *testing.T, b *bus.Bus, agent, args string) string {
	t.Helper()
	run := schema.NewID()
	if err := b.StartRun(t.Context(), &schema.Call{Run: run, Tool: agent, Args: schema.JSONText(args)}); err != nil {
		t.Fatal(err)
	}
	return run
}

func answerOf(t *testing.T, facts []schema.Fact, k int) (a schema.Answer) {
	t.Helper()
	for _, f := range facts {
		if f.Key == schema.AnswerKey(k) {
			if err := schema.Decode(f.Data, &a); err != nil {
				t.Fatal(err)
			}
		}
	}
	return a
}

// TestWaitingHoldsNoSlot: a chain of agents deeper than all slots together finishes, and so does a fan-out from one
// slot. No request of the model is made twice.
func TestWaitingHoldsNoSlot(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		calls map[string][]string
		want  string
	}{
		"chain":   {map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"e"}}, "a(b(c(d(e()))))"},
		"fan-out": {map[string][]string{"a": {"b", "c", "d", "e", "f", "g"}}, "a(b() c() d() e() f() g())"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := server(t)
			b := connect(t, srv)
			c := &company{calls: tt.calls}
			hosts := 2
			if name == "fan-out" {
				hosts = 1
			}
			for range hosts {
				c.open(t, connect(t, srv), 1)
			}
			began := time.Now()
			facts := waitClosed(t, b, start(t, b, "a", `{"task":"go"}`), 30*time.Second)
			t.Logf("finished after %v", time.Since(began))
			if got := answerOf(t, facts, 1); got.Text != tt.want {
				t.Errorf("answer %+v", got)
			}
			for _, err := range bustest.Check(facts) {
				t.Error(err)
			}
			for agent, n := range c.asked {
				if want := 1 + min(1, len(tt.calls[agent])); n != want {
					t.Errorf("agent %s was asked %d times, want %d", agent, n, want)
				}
			}
		})
	}
}

// TestOneLease: of all processes one gets a lease, until it is over.
func TestOneLease(t *testing.T) {
	t.Parallel()
	srv := server(t)
	var got []bool
	for range 3 {
		mine, err := bus.Lease(connect(t, srv), "task", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, mine)
	}
	if want := []bool{true, false, false}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	b, late := connect(t, srv), time.Now().Add(20*time.Second)
	for held := 0; held < 2; {
		mine, err := bus.Lease(b, "short", time.Second)
		if err != nil || time.Now().After(late) {
			t.Fatalf("the lease does not end: %v", err)
		}
		if mine {
			held++
		}
	}
}

// A stream of timers that is away for a while costs time, and no run: nobody was lost over it.
func TestParkWithoutTimers(t *testing.T) {
	bustest.Virtual(t, func(t *testing.T, srv *bustest.Servers) {
		f, b, js := stranger(t, srv), connect(t, srv), streams(t, srv)
		hosted(t, b, bus.Hosting{Slots: 1, Host: (&company{keep: time.Hour}).host(t, b)})
		run := start(t, b, "a", `{"task":"go","keep":true}`)
		waitFact(t, b, run, schema.AnswerKey(1))
		bustest.Eventually(t, "the run is parked", func() bool { return f.left() == 0 })
		if err := js.DeleteStream(t.Context(), "JC_TIMER"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.SayTo(t.Context(), run, "are you there?"); err != nil {
			t.Fatal(err)
		}
		waitFact(t, b, run, schema.AnswerKey(2))
		time.Sleep(3 * time.Minute)
		for _, cfg := range bus.Streams(bus.DefaultPrefix, 1) {
			if cfg.Name != "JC_TIMER" {
				continue
			}
			if _, err := js.CreateStream(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
		}
		bustest.Eventually(t, "the run is parked", func() bool { return f.left() == 0 })
		if _, err := b.SayTo(t.Context(), run, "still there?"); err != nil {
			t.Fatal(err)
		}
		waitFact(t, b, run, schema.AnswerKey(3))
		facts, err := b.Facts(t.Context(), run, 0, schema.KindCtl)
		if err != nil {
			t.Fatal(err)
		}
		for _, fact := range facts {
			var c schema.Ctl
			if err := schema.Decode(fact.Data, &c); err != nil || c.Act != schema.CtlOwn {
				t.Errorf("%s: %+v, %v", fact.Key, c, err)
			}
		}
	})
}

// TestWokenInTheFarFuture: a run that waits for a question which never expires is parked like any other.
func TestWokenInTheFarFuture(t *testing.T) {
	t.Parallel()
	b := connect(t, server(t))
	for _, at := range []time.Time{time.Unix(1<<40, 0), time.UnixMilli(math.MaxInt64)} {
		if err := b.WakeAt(schema.NewID(), at); err != nil {
			t.Errorf("%v: %v", at, err)
		}
	}
}
