package loop_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

func TestCancelStopsDurablyAndSettlesAllCalls(t *testing.T) {
	t.Parallel()
	for _, parallel := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(calls("hang", "hang", "ok"), looptest.Text("never"))
			r.cfg.Agent.Parallel.Calls = parallel
			run := r.start(t)
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("the user left"))
			defer cancel()
			answer, err := run.Say(ctx, "go")
			if !errors.Is(err, loop.ErrStopped) || answer.Reason != schema.ReasonCancelled || !strings.Contains(err.Error(), "the user left") {
				t.Errorf("answer %+v, %v", answer, err)
			}
			if open := run.State().OpenCalls(1); len(open) != 0 {
				t.Errorf("calls %v are open", open)
			}
			keys := r.bus.Keys(run.ID())
			stop, result := slices.Index(keys, "ctl.2"), slices.Index(keys, "result.1.0.test")
			if stop < 0 || stop > result || keys[len(keys)-1] != "close" || slices.Contains(keys, "answer.1") {
				t.Errorf("facts %v", keys)
			}
			var c schema.Close
			if r.bus.Fact(run.ID(), schema.CloseKey(), &c); c.State != "cancelled" {
				t.Errorf("close %+v", c)
			}
			if len(r.model.Requests()) != 1 {
				t.Error("a stopped run asked the model")
			}
			if end := r.events.Of(loop.EventRunEnd); len(end) != 1 || end[0].Reason != schema.ReasonCancelled {
				t.Errorf("end %+v", end)
			}
			r.checkEvents(t)
			if err := run.Close(t.Context()); err != nil {
				t.Errorf("close after a stop: %v", err)
			}
		})
	}
}

func TestCancelEndsModelRequestAndBackOff(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]looptest.Step{"request": looptest.Hang, "back-off": modelError(model.RateLimited, time.Minute)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(step)
				agent, err := loop.New(r.cfg)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				_, err = agent.Run(ctx, "go")
				if !errors.Is(err, loop.ErrStopped) || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
				r.checkEvents(t)
			})
		})
	}
}

// TestStopSlotOfAnother: a stop written by somebody else ends the calls and closes the run.
func TestStopSlotOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(calls("hang"), looptest.Text("never"))
		run := r.start(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			time.Sleep(time.Second) // virtual
			stop := &schema.Ctl{Act: schema.CtlStop, Why: "enough"}
			if _, err := r.bus.Append(t.Context(), run.ID(), schema.CtlKey(2), stop, schema.Key{}); err != nil {
				t.Error(err)
			}
		})
		_, err := run.Say(t.Context(), "go")
		wg.Wait()
		if !errors.Is(err, loop.ErrStopped) {
			t.Errorf("error %v", err)
		}
		var c schema.Close
		if !r.bus.Fact(run.ID(), schema.CloseKey(), &c) || c.State != "stopped" {
			t.Errorf("close %+v", c)
		}
		if diff := cmp.Diff([]schema.ErrorType{"Cancelled"}, errorTypes(run, 1)); diff != "" {
			t.Error(diff)
		}
		r.checkEvents(t)
	})
}

// TestStopWhileIdle: the next message is not worked on.
func TestStopWhileIdle(t *testing.T) {
	t.Parallel()
	r := newRig(looptest.Text("one"), looptest.Text("never"))
	run := r.start(t)
	if _, err := run.Say(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	r.append(t, run.ID(), schema.CtlKey(2), &schema.Ctl{Act: schema.CtlStop, Why: "enough"})
	if _, err := run.Say(t.Context(), "more"); !errors.Is(err, loop.ErrStopped) || len(r.model.Requests()) != 1 {
		t.Errorf("error %v after %d requests", err, len(r.model.Requests()))
	}
	if c := run.State().Closed(); c == nil || c.State != "stopped" {
		t.Errorf("close %+v", c)
	}
	r.checkEvents(t)
	if got := r.events.Of(loop.EventError); len(got) != 1 {
		t.Errorf("errors %+v", got)
	}
}

// TestUnheardStop: a lost hint costs a model request, not the stop.
func TestUnheardStop(t *testing.T) {
	t.Parallel()
	r := newRig()
	deaf := &deafBus{r.bus}
	r.cfg.Bus = deaf
	var run *loop.Run
	r.cfg.Model = stepModel(func(*model.Request) *model.Response {
		r.append(t, run.ID(), schema.CtlKey(2), &schema.Ctl{Act: schema.CtlStop})
		return &model.Response{Text: "unheard of"}
	})
	run = r.start(t)
	_, err := run.Say(t.Context(), "go")
	if !errors.Is(err, loop.ErrStopped) || run.State().Turns() != 0 || run.State().Closed() == nil {
		t.Errorf("error %v, facts %v", err, r.bus.Keys(run.ID()))
	}
	r.checkEvents(t)
}

// deafBus hears nothing.
type deafBus struct{ *looptest.Bus }

func (*deafBus) Watch(context.Context, string, func(schema.Fact)) (func(), error) {
	return func() {}, nil
}

func (r *rig) append(t *testing.T, run string, key schema.Key, p schema.Encodable) {
	t.Helper()
	if _, err := r.bus.Append(t.Context(), run, key, p, schema.Key{}); err != nil {
		t.Error(err)
	}
}

func TestFencedOwnerWritesNothingMore(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		r := newRig()
		if deaf {
			r.cfg.Bus = &deafBus{r.bus}
		}
		var run *loop.Run
		r.cfg.Model = stepModel(func(req *model.Request) *model.Response {
			if req.Turn == 2 {
				r.append(t, run.ID(), schema.CtlKey(2), &schema.Ctl{Act: schema.CtlOwn, Instance: "other"})
			}
			return &model.Response{Calls: raw("ok")}
		})
		run = r.start(t)
		_, err := run.Say(t.Context(), "go")
		if !errors.Is(err, loop.ErrFenced) {
			t.Errorf("error %v", err)
		}
		keys := r.bus.Keys(run.ID())
		if err := run.Close(t.Context()); !errors.Is(err, loop.ErrFenced) {
			t.Errorf("close: %v", err)
		}
		if _, err := run.Say(t.Context(), "still there?"); !errors.Is(err, loop.ErrFenced) {
			t.Errorf("say: %v", err)
		}
		if now := r.bus.Keys(run.ID()); keys[len(keys)-1] != "ctl.2" || len(now) != len(keys) {
			t.Errorf("facts %v", now)
		}
		r.checkEvents(t)
	}
}

func TestFencedAtClose(t *testing.T) {
	t.Parallel()
	r := newRig(looptest.Text("done"))
	r.cfg.Bus = &deafBus{r.bus}
	run := r.start(t)
	if _, err := run.Say(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	r.append(t, run.ID(), schema.CtlKey(2), &schema.Ctl{Act: schema.CtlOwn, Instance: "other"})
	if err := run.Close(t.Context()); !errors.Is(err, loop.ErrFenced) || slices.Contains(r.bus.Keys(run.ID()), "close") {
		t.Errorf("close: %v", err)
	}
	r.checkEvents(t)
}

func TestTransportGoneLeavesRunForAnother(t *testing.T) {
	t.Parallel()
	gone := errors.New("no servers")
	tests := []struct {
		name string
		set  func(*looptest.Bus)
	}{
		{"dispatch", func(b *looptest.Bus) {
			b.Broken = func(c *schema.Call) error {
				if c.Index == 1 {
					return gone
				}
				return nil
			}
		}},
		{"dispatch panics", func(b *looptest.Bus) { b.Broken = func(*schema.Call) error { panic(gone) } }},
		{"turn", refuse(gone, schema.KindTurn)},
		{"answer", refuse(gone, schema.KindAnswer)},
		{"say", refuse(gone, schema.KindSay)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(calls("ok", "ok", "ok"), looptest.Text("done"))
			r.cfg.Agent.Parallel.Calls = true
			tt.set(r.bus)
			agent, err := loop.New(r.cfg)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := agent.Run(t.Context(), "go"); !errors.Is(err, gone) {
				t.Errorf("error %v", err)
			}
			r.checkEvents(t)
			events := r.events.List()
			if last := events[len(events)-1]; last.Error == "" || slices.Contains(r.bus.Keys(last.Run), "close") {
				t.Errorf("last event %+v", last)
			}
		})
	}
}

func refuse(err error, kind schema.Kind) func(*looptest.Bus) {
	return func(b *looptest.Bus) {
		b.Refuse = func(_ string, key schema.Key, _ schema.Encodable) error {
			if key.Kind == kind {
				return err
			}
			return nil
		}
	}
}
