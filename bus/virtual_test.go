package bus_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// The tests of this file run in virtual time, see bustest.Virtual, and so one after the other. There the bounds of a time can
// be narrow: no other work holds anything up.

// wantWithin fails the test unless got is at least want, and at most slack more.
func wantWithin(t *testing.T, what string, got, want, slack time.Duration) {
	t.Helper()
	if got < want || got > want+slack {
		t.Errorf("%s after %v, want %v to %v", what, got, want, want+slack)
	}
}

// left tells how many messages are in the work stream.
func (f foreign) left() int {
	f.t.Helper()
	state, _ := f.api("STREAM.INFO.JC_WORK", "")["state"].(map[string]any)
	n, _ := state["messages"].(float64)
	return int(n)
}

// TestD15OneStartForAWeek: until 7 days after its run was closed a copy of a run-once call starts nothing, and whoever
// makes the call again gets the result that it has. Then whoever hosts agents has the run go, within the hour, and no other.
func TestD15OneStartForAWeek(t *testing.T) {
	bustest.Virtual(t, func(t *testing.T, srv *bustest.Servers) {
		n := &counter{starts: map[string]int{}}
		c := call("r", "work"+runOnce, 0)
		data, err := schema.Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		var closed time.Time
		visit := func(do func(b *bus.Bus)) { // nobody else is there
			f, b, w := stranger(t, srv), connect(t, srv), connect(t, srv)
			stop := serve(t, w, bus.Worker{Queue: "test", Tools: toolbox{c.Tool: n.run}})
			acks := f.acks("test")
			if r := settled(t, b, c); !r.OK {
				t.Errorf("%+v", r)
			}
			f.store("jc.work.test.0", data)
			f.ack(acks, "+ACK")
			if n.starts[c.String()] != 1 {
				t.Errorf("started %d times", n.starts[c.String()])
			}
			do(b)
			if err := stop(); err != nil {
				t.Error(err)
			}
			w.Close()
			b.Close()
			f.nc.Close()
		}
		visit(func(b *bus.Bus) {
			openRun(t, b, "r")
			put(t, b, "r", schema.CloseKey(), &schema.Close{State: "done"})
			closed = b.Now()
		})
		for _, age := range []time.Duration{time.Hour, 24 * time.Hour, bus.Retention - time.Minute} {
			time.Sleep(time.Until(closed.Add(age)))
			visit(func(b *bus.Bus) {
				if n, err := b.Expire(t.Context(), b.Now().Add(-bus.Retention)); n != 0 || err != nil {
					t.Errorf("after %v: %d runs have expired, %v", age, n, err)
				}
			})
		}
		b := connect(t, srv)
		openRun(t, b, "open")
		new(company).open(t, b, 1)
		gone := func() bool {
			facts, err := b.Facts(t.Context(), "r", 0)
			return err == nil && len(facts) == 0
		}
		for !gone() && time.Since(closed) < bus.Retention+2*time.Hour {
			time.Sleep(time.Minute)
		}
		wantWithin(t, "the run goes", time.Since(closed), bus.Retention, time.Hour+time.Minute)
		if facts, err := b.Facts(t.Context(), "open", 0); err != nil || len(facts) != 1 {
			t.Errorf("another run: %v, %v", facts, err)
		}
	})
}

// TestD11ApprovalExpiresAfterDays: what nobody has answered within two days is refused then, by a timer that wakes the
// run; and if nobody was there, by the next who comes.
func TestD11ApprovalExpiresAfterDays(t *testing.T) {
	for name, late := range map[string]time.Duration{"on time": -time.Minute, "by who comes later": 12 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			bustest.Virtual(t, func(t *testing.T, srv *bustest.Servers) {
				bank := toolbox{"pay": neverRun(t)}
				f, b := stranger(t, srv), connect(t, srv)
				work := serve(t, b, bus.Worker{Queue: "bank", Tools: bank})
				stop := serveWary(t, b)
				run := startRun(t, b)
				due := time.UnixMilli(waitAsked(t, b, run, 2)[0].Question.ExpiresMS)
				bustest.Eventually(t, "the run is parked", func() bool { return f.left() == 0 })
				stop()
				if err := work(); err != nil {
					t.Error(err)
				}
				b.Close()
				f.nc.Close()
				time.Sleep(time.Until(due.Add(late)))
				b = connect(t, srv)
				serve(t, b, bus.Worker{Queue: "bank", Tools: bank})
				serveWary(t, b)
				facts := waitClosed(t, b, run, time.Hour)
				if got := outcomes(t, facts); !slices.Equal(got, []schema.ErrorType{schema.Denied, schema.Denied}) {
					t.Errorf("outcomes %v", got)
				}
				wantWithin(t, "the run ends", time.Since(due), max(late, 0), 10*time.Second)
				for _, f := range facts {
					var v schema.Verdict
					if f.Key.Kind == schema.KindVerdict && (schema.Decode(f.Data, &v) != nil || v.Decision != schema.VerdictExpired || f.Time.Before(due)) {
						t.Errorf("%s at %v: %+v, want it expired at %v", f.Key, f.Time, v, due)
					}
				}
			})
		})
	}
}

// TestKeptForDays: a conversation stays open for as long after its last answer as it is kept, and a timer closes it.
func TestKeptForDays(t *testing.T) {
	bustest.Virtual(t, func(t *testing.T, srv *bustest.Servers) {
		const keep = 48 * time.Hour
		run := ""
		var answered time.Time
		visit := func(at time.Time, do func(b *bus.Bus)) { // nobody else is there
			time.Sleep(time.Until(at))
			f, b := stranger(t, srv), connect(t, srv)
			stop := hosted(t, b, bus.Hosting{Slots: 1, Host: (&company{keep: keep}).host(t, b)})
			do(b)
			bustest.Eventually(t, "the run is parked", func() bool { return f.left() == 0 })
			stop()
			b.Close()
			f.nc.Close()
		}
		visit(time.Now(), func(b *bus.Bus) {
			run = start(t, b, "a", `{"task":"go","keep":true}`)
			waitFact(t, b, run, schema.AnswerKey(1))
			answered = b.Now()
		})
		visit(answered.Add(time.Hour), func(b *bus.Bus) {
			if _, err := b.SayTo(t.Context(), run, "still there?"); err != nil {
				t.Fatal(err)
			}
			waitFact(t, b, run, schema.AnswerKey(2))
			answered = b.Now()
		})
		visit(answered.Add(keep-time.Minute), func(b *bus.Bus) {
			if facts, err := b.Facts(t.Context(), run, 0, schema.KindClose); err != nil || len(facts) > 0 {
				t.Errorf("closed before its time: %v, %v", facts, err)
			}
			waitClosed(t, b, run, time.Hour)
			wantWithin(t, "it closes", time.Since(answered), keep, 10*time.Second)
		})
	})
}

// TestDeadlinesInVirtualTime: when whoever waits for a call that is not done learns so, and what.
func TestDeadlinesInVirtualTime(t *testing.T) {
	const within, grace = 2 * time.Hour, 3 * time.Second
	for name, tt := range map[string]struct {
		tool  string
		begun bool // by an instance that says that it runs
		want  schema.ErrorType
		after time.Duration
	}{
		"run-once, not started":   {"work" + runOnce, false, schema.Timeout, within},
		"idempotent, not started": {"work", false, schema.Timeout, within + grace},
		"run-once, started":       {"work" + runOnce, true, schema.OutcomeUnknown, within + grace},
	} {
		t.Run(name, func(t *testing.T) {
			bustest.Virtual(t, func(t *testing.T, srv *bustest.Servers) {
				f, b := stranger(t, srv), connect(t, srv, func(c *bus.Config) { c.Grace = grace })
				if tt.begun {
					f.store("jc.run.r.begin.1.0.test", []byte(`{"v":1,"instance":"ghost","delivery":1,"seq":1}`), once, "0")
				}
				hints := f.listen("jc.cancel.r")
				began := time.Now()
				r, err := b.Dispatch(t.Context(), call("r", tt.tool, 0), "test", within)
				if err != nil || r.OK || r.Error.Type != tt.want {
					t.Errorf("%+v, %v", r, err)
				}
				wantWithin(t, "the result comes", time.Since(began), tt.after, time.Second)
				if n, _, err := hints.Pending(); err != nil || (n > 0) != (tt.after > within) {
					t.Errorf("%d hints to cancel, %v", n, err)
				}
				if f.left() != 1 {
					t.Errorf("%d messages are left, want one for workers that come later", f.left())
				}
				time.Sleep(time.Until(began.Add(within + bus.TTLMargin - 5*time.Second)))
				if f.left() != 1 {
					t.Error("the message went before its time")
				}
				time.Sleep(10 * time.Second)
				if f.left() != 0 {
					t.Error("the message of a call that is over stays")
				}
			})
		})
	}
}

// TestLostWorkersInVirtualTime: how long the calls of a worker that is gone wait for another: an idempotent one for
// AckWait, a run-once one until its worker was silent for twice as long.
func TestLostWorkersInVirtualTime(t *testing.T) {
	for i, want := range []time.Duration{bus.AckWait, 3 * bus.AckWait} {
		t.Run(fmt.Sprintf("run-once %t", i == 1), func(t *testing.T) {
			bustest.Virtual(t, func(t *testing.T, srv *bustest.Servers) {
				b, gone, g := connect(t, srv), connect(t, srv), newDoor()
				tool := []string{"work", "work" + runOnce}[i]
				ended := make(chan error, 1)
				go func() { ended <- gone.Serve(t.Context(), bus.Worker{Queue: "test", Tools: toolbox{tool: g.run}}) }()
				done := dispatched(t, b, call("r", tool, 0), "test", time.Hour)
				<-g.started
				died := time.Now()
				gone.Close()
				<-ended
				serve(t, connect(t, srv), bus.Worker{Queue: "test", Tools: toolbox{tool: echo}})
				r := <-done
				if r.OK != (i == 0) || !r.OK && r.Error.Type != schema.OutcomeUnknown {
					t.Errorf("%+v", r)
				}
				wantWithin(t, "the result comes", time.Since(died), want-bus.InProgress, 2*bus.InProgress)
			})
		})
	}
}

// TestCatalogLives: the entry of a worker that is gone without a word goes after 15 s, what its tools were after a day.
func TestCatalogLives(t *testing.T) {
	bustest.Virtual(t, func(t *testing.T, srv *bustest.Servers) {
		w := connect(t, srv)
		ended := make(chan error, 1)
		go func() { ended <- w.Serve(t.Context(), bus.Worker{Queue: "test", Tools: toolbox{"echo": echo}}) }()
		bustest.Eventually(t, "the worker is seen", func() bool { return len(w.Catalog().Workers()) == 1 })
		kv, err := streams(t, srv).KeyValue(t.Context(), "jc_catalog")
		if err != nil {
			t.Fatal(err)
		}
		has := func(beginning string) bool {
			keys, err := kv.Keys(t.Context())
			if err != nil && !errors.Is(err, jetstream.ErrNoKeysFound) {
				t.Error(err)
			}
			return slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, beginning) })
		}
		const worker, tools = "test.", "tools.test."
		time.Sleep(10 * bus.HeartbeatTTL)
		if !has(worker) || !has(tools) {
			t.Error("a worker that is there is forgotten")
		}
		w.Close()
		<-ended
		gone := time.Now()
		for has(worker) {
			time.Sleep(100 * time.Millisecond)
		}
		wantWithin(t, "the worker goes", time.Since(gone), bus.HeartbeatTTL-bus.Heartbeat, bus.Heartbeat+2*time.Second)
		if !has(tools) {
			t.Error("its tools went with it")
		}
		time.Sleep(bus.ToolsTTL + time.Minute)
		if has(tools) {
			t.Error("the tools of a worker that is gone stay")
		}
	})
}
