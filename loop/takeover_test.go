package loop_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// agent returns a foreground owner that is killed after so many steps. Its own spec is another one than that of the runs.
func (h *hosting) agent(t *testing.T, steps int, after bool) *loop.Agent {
	t.Helper()
	cfg := h.cfg
	h.events = &looptest.Events{} // of the newest owner
	cfg.Bus, cfg.Model, cfg.Events = &mortal{Bus: h.bus, left: steps, after: after}, h, h.events.Add
	a, err := loop.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// converse plays a conversation of two messages from wherever the run is, and closes it.
func (h *hosting) converse(t *testing.T, steps int, after bool) error {
	t.Helper()
	a := h.agent(t, steps, after)
	r, err := a.Start(t.Context(), "r")
	if errors.Is(err, loop.ErrRunExists) {
		r, err = a.Resume(t.Context(), "r")
	}
	if err != nil {
		return err
	}
	for r.Unfinished() {
		if _, err := r.Work(t.Context()); err != nil {
			return err
		}
	}
	for _, text := range []string{"go", "and now?"}[r.State().Says():] {
		if _, err := r.Say(t.Context(), text); err != nil {
			return err
		}
	}
	return r.Close(t.Context())
}

// TestD12ForegroundKilledAtEveryStep kills a foreground owner after each of its steps: another one resumes the run, and the
// memory is that of an undisturbed one. No written turn is asked again, no call with a result runs again.
func TestD12ForegroundKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers := map[int]*model.Response{
			1: {Text: "let me see", Calls: raw("count", "nobody", "count"), Finish: schema.FinishCalls},
			3: {Calls: raw("count", "fail"), Finish: schema.FinishCalls},
		}
		whole := newHosting(answers)
		if err := whole.converse(t, forever, false); err != nil {
			t.Fatal(err)
		}
		want, kills := whole.memory(t, "r"), 0
		for _, after := range []bool{false, true} {
			for steps := 0; ; steps++ {
				h := newHosting(answers)
				if h.converse(t, steps, after) == nil {
					break
				}
				kills++
				written := h.memory(t, "r").Turns()
				asked := map[int]int{1: h.asked[1], 2: h.asked[2], 3: h.asked[3], 4: h.asked[4]}
				if err := h.converse(t, forever, false); err != nil {
					t.Fatalf("after %d steps: %v; facts %v", steps, err, h.bus.Keys("r"))
				}
				h.checkEvents(t)
				got := h.memory(t, "r")
				if diff := cmp.Diff(want.Messages(), got.Messages()); diff != "" || got.Closed() == nil || got.Closed().State != "done" || got.Answers() != 2 {
					t.Errorf("after %d steps: close %+v, %s", steps, got.Closed(), diff)
				}
				for n := 1; n <= written; n++ {
					if h.asked[n] != asked[n] {
						t.Errorf("after %d steps: turn %d was written and is asked again", steps, n)
					}
				}
				for call, times := range h.ran {
					if times != 1 {
						t.Errorf("after %d steps: call %s ran %d times", steps, call, times)
					}
				}
			}
		}
		if kills < 20 {
			t.Errorf("only %d kills", kills)
		}
	})
}

// TestResumeRefuses: what cannot go on gets no slot.
func TestResumeRefuses(t *testing.T) {
	t.Parallel()
	spec := schema.AgentSpec{ID: "other"}
	for name, c := range map[string]struct {
		run   string
		facts map[schema.Key]schema.Encodable
		want  error
	}{
		"unknown":    {"r", nil, loop.ErrNoRun},
		"not an id":  {"r.*", nil, loop.ErrNoRun},
		"closed":     {"r", map[schema.Key]schema.Encodable{schema.OpenKey(): &schema.Open{Kind: schema.RunAgent, Agent: &spec}, schema.CloseKey(): &schema.Close{State: "done"}}, loop.ErrClosed},
		"a call":     {"r", map[schema.Key]schema.Encodable{schema.OpenKey(): &schema.Open{Kind: schema.RunCall}}, loop.ErrNotResumable},
		"guarded":    {"r", map[schema.Key]schema.Encodable{schema.OpenKey(): &schema.Open{Kind: schema.RunAgent, Agent: &spec, Chain: "abc"}}, loop.ErrNotResumable},
		"impossible": {"r", map[schema.Key]schema.Encodable{schema.OpenKey(): &schema.Open{Kind: schema.RunAgent, Agent: &schema.AgentSpec{}}}, loop.ErrNotResumable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHosting(nil)
			for key, f := range c.facts {
				h.append(t, c.run, key, f)
			}
			if r, err := h.agent(t, forever, false).Resume(t.Context(), c.run); !errors.Is(err, c.want) || r != nil {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if keys := h.bus.Keys(c.run); len(keys) != len(c.facts) {
				t.Errorf("facts %v", keys)
			}
		})
	}
}

// TestResumeIsTheRunsAgent: the agent is that of the run, whatever the file says by now.
func TestResumeIsTheRunsAgent(t *testing.T) {
	t.Parallel()
	h := newHosting(nil)
	principal := schema.Principal{ID: "ada"}
	h.append(t, "r", schema.OpenKey(), &schema.Open{Kind: schema.RunAgent, Agent: &schema.AgentSpec{ID: "older", Instructions: "Be slow."}, Principal: principal})
	r, err := h.agent(t, forever, false).Resume(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	var call *schema.Call
	h.tool("who", func(_ context.Context, c *schema.Call) (string, error) { call = c; return "", nil })
	h.answers = map[int]*model.Response{1: {Calls: raw("who"), Finish: schema.FinishCalls}}
	if _, err := r.Say(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	if call.Agent != "older" || call.Principal.ID != "ada" || r.Messages()[0].Text != "Be slow." {
		t.Errorf("call %+v, memory %+v", call, r.Messages()[0])
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.checkEvents(t)
}

// slow is a model that thinks for long, whatever becomes of its caller.
type slow struct{ loop.Model }

func (m slow) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	time.Sleep(3 * time.Second)
	return m.Model.Generate(context.WithoutCancel(ctx), req)
}

// TestResumeFences: an owner that is still alive hears that it has lost the run, or loses its next write.
func TestResumeFences(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHosting(map[int]*model.Response{1: {Calls: raw("count"), Finish: schema.FinishCalls}})
		cfg := h.cfg
		cfg.Bus, cfg.Model = h.bus, slow{h}
		alive, err := loop.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		old, err := alive.Start(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() {
			_, err := old.Say(t.Context(), "go")
			ended <- err
		}()
		time.Sleep(time.Second)
		r, err := h.agent(t, forever, false).Resume(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		if a, err := r.Work(t.Context()); err != nil || a.Reason != schema.ReasonDone {
			t.Errorf("%+v, %v", a, err)
		}
		if err := <-ended; !errors.Is(err, loop.ErrFenced) {
			t.Errorf("the former owner: %v", err)
		}
		if err := old.Close(t.Context()); !errors.Is(err, loop.ErrFenced) {
			t.Errorf("its close: %v", err)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		m := h.memory(t, "r")
		if m.Closed() == nil || m.Answers() != 1 || m.Turn(1).Own != 2 || len(h.ran) != 1 {
			t.Errorf("ran %v, facts %v", h.ran, h.bus.Keys("r"))
		}
	})
}

// TestResumeStopped: a stop that came while nobody had the run is carried out, without a request.
func TestResumeStopped(t *testing.T) {
	t.Parallel()
	h := newHosting(map[int]*model.Response{1: {Calls: raw("count", "count"), Finish: schema.FinishCalls}})
	if err := h.converse(t, 4, false); !errors.Is(err, errKilled) { // open, own, say, turn
		t.Fatal(err)
	}
	h.append(t, "r", schema.CtlKey(2), &schema.Ctl{Act: schema.CtlStop, Why: "enough"})
	r, err := h.agent(t, forever, false).Resume(t.Context(), "r")
	if err != nil || !r.Unfinished() {
		t.Fatal(err)
	}
	if _, err := r.Work(t.Context()); !errors.Is(err, loop.ErrStopped) {
		t.Errorf("error %v", err)
	}
	if m := h.memory(t, "r"); m.Closed() == nil || m.Closed().State != "stopped" || len(m.OpenCalls(1)) > 0 || h.asked[2] > 0 {
		t.Errorf("facts %v", h.bus.Keys("r"))
	}
}

// TestResumeAgainAndAgain: who is told to go on is not given up, however often the owner is lost.
func TestResumeAgainAndAgain(t *testing.T) {
	t.Parallel()
	h := newHosting(nil)
	for range 6 {
		if err := h.converse(t, 2, false); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
	}
	if err := h.converse(t, forever, false); err != nil {
		t.Error(err)
	}
	if m := h.memory(t, "r"); m.Closed() == nil || m.Closed().State != "done" {
		t.Errorf("facts %v", h.bus.Keys("r"))
	}
}

// TestResumeAnswersWhatIsSaid: what an earlier owner left is ended first, and its answer is not that of the new message.
func TestResumeAnswersWhatIsSaid(t *testing.T) {
	t.Parallel()
	h := newHosting(nil)
	if err := h.converse(t, 4, false); !errors.Is(err, errKilled) { // open, own, say, turn; the answer is missing
		t.Fatal(err)
	}
	r, err := h.agent(t, forever, false).Resume(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	if a, err := r.Say(t.Context(), "and now?"); err != nil || a.Say != 2 || r.State().Answers() != 2 {
		t.Errorf("%+v, %v; facts %v", a, err, h.bus.Keys("r"))
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestResumeCountsTimeAnew: the wall clock did not run while nobody had the run.
func TestResumeCountsTimeAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHosting(map[int]*model.Response{1: {Calls: []schema.RawCall{waitFor("3s")}, Finish: schema.FinishCalls}})
		h.cfg.Agent.Limits.WallClockMS = 5000
		if err := h.converse(t, 4, false); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if err := h.converse(t, forever, false); err != nil {
			t.Fatal(err)
		}
		if m := h.memory(t, "r"); m.Answer(1).Reason != schema.ReasonDone || m.Result(1, 0).Output != "3s" {
			t.Errorf("%+v, facts %v", m.Answer(1), h.bus.Keys("r"))
		}
	})
}

// TestResumeStays: who resumes a run in the foreground waits for the agents it calls, and does not park.
func TestResumeStays(t *testing.T) {
	t.Parallel()
	h := newHosting(map[int]*model.Response{1: {Calls: raw("clerk"), Finish: schema.FinishCalls}})
	h.bus.Tool(schema.Tool{Name: "clerk", Queue: schema.QueueAgents}, func(context.Context, *schema.Call) (string, error) { return "done", nil })
	if err := h.converse(t, 4, false); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	if err := h.converse(t, forever, false); err != nil {
		t.Fatal(err)
	}
	keys := h.bus.Keys("r")
	h.checkEvents(t)
	if m := h.memory(t, "r"); m.Closed() == nil || m.Result(1, 0).Output != "done" || slices.Contains(keys, "sent.1.1") {
		t.Errorf("facts %v", keys)
	}
}

// TestNumbersOfStrangers: an answer and a turn that name turns and messages which there cannot be have the run go on.
func TestNumbersOfStrangers(t *testing.T) {
	t.Parallel()
	turn := func(say int) *schema.Turn { return &schema.Turn{N: 1, Own: 1, Say: say, Finish: schema.FinishStop} }
	for name, facts := range map[string]map[schema.Key]schema.Encodable{
		"a turn below 0":  {schema.TurnKey(1): turn(1), schema.AnswerKey(1): &schema.Answer{Turn: -9}},
		"a later turn":    {schema.TurnKey(1): turn(1), schema.AnswerKey(1): &schema.Answer{Turn: math.MaxInt}},
		"a later message": {schema.TurnKey(1): turn(math.MaxInt)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHosting(nil)
				for key, p := range facts {
					if _, err := h.bus.Append(t.Context(), "r", key, p, schema.Key{}); err != nil {
						t.Fatal(err)
					}
				}
				if got := h.take(t, starter("r", `{"task":"go"}`)); got.Act != schema.TakenDone {
					t.Errorf("%+v, facts %v", got, h.bus.Keys("r"))
				}
			})
		})
	}
}
