package loop_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

func TestLimitsEndWithOneTurnWithoutTools(t *testing.T) {
	t.Parallel()
	used := func(args string) looptest.Step {
		return looptest.Answer(model.Response{Calls: []schema.RawCall{{Name: "wait", Args: args}}, Usage: schema.Usage{Input: 90, Output: 10}})
	}
	tests := []struct {
		reason schema.Reason
		limits schema.Limits
		says   string
	}{
		{schema.ReasonMaxSteps, schema.Limits{MaxSteps: 2}, "limit of 2 steps"},
		{schema.ReasonTokens, schema.Limits{MaxTokens: 200}, "limit of 200 tokens"},
		{schema.ReasonWallClock, schema.Limits{WallClockMS: 3000}, "time limit of 3s"},
	}
	for _, tt := range tests {
		t.Run(string(tt.reason), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(used(`{"for":"1s"}`), used(`{"for":"2s"}`), looptest.Text("so far"))
				r.cfg.Agent.Limits = tt.limits
				answer, run := r.run(t)
				if answer.Reason != tt.reason || answer.Text != "so far" || answer.Turn != 3 {
					t.Errorf("answer %+v", answer)
				}
				last := r.model.Requests()[2]
				say := last.Messages[len(last.Messages)-1]
				if len(last.Tools) != 0 || say.Role != schema.RoleSystem || !strings.Contains(say.Text, tt.says) {
					t.Errorf("the last request has %d tools and ends with %+v", len(last.Tools), say)
				}
				if got := run.State().Say(2).Source; got != "limit:"+string(tt.reason)+":1" {
					t.Errorf("source %q", got)
				}
			})
		})
	}
}

func TestCallsOfLastTurnDoNotRun(t *testing.T) {
	t.Parallel()
	r := newRig(calls("ok"), calls("ok", "ok"))
	r.cfg.Agent.Limits.MaxSteps = 1
	answer, run := r.run(t)
	if answer.Reason != schema.ReasonMaxSteps || answer.Text != "" {
		t.Errorf("answer %+v", answer)
	}
	if diff := cmp.Diff([]schema.ErrorType{"Denied", "Denied"}, errorTypes(run, 2)); diff != "" {
		t.Error(diff)
	}
}

func TestHungModelIsBoundByWallClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(looptest.Hang, looptest.Hang)
		began := time.Now()
		answer, run := r.run(t)
		if answer.Reason != schema.ReasonWallClock || answer.Error == "" || run.State().Turns() != 0 {
			t.Errorf("answer %+v after %d turns", answer, run.State().Turns())
		}
		if took := time.Since(began); took != 5*time.Minute+30*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestWallClockEndsCallsAndStartsNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(looptest.Calls(waitFor("1h"), waitFor("1s")), looptest.Text("late"))
		r.cfg.Agent.Limits.WallClockMS = 10_000
		answer, run := r.run(t)
		if diff := cmp.Diff([]schema.ErrorType{"Timeout", "Timeout"}, errorTypes(run, 1)); diff != "" {
			t.Error(diff)
		}
		if answer.Reason != schema.ReasonWallClock || r.bus.Fact(run.ID(), schema.BeginKey(1, 1, looptest.Queue), &schema.Begin{}) {
			t.Errorf("answer %+v, or the second call began", answer)
		}
	})
}

func TestLimitsHoldPerExchange(t *testing.T) {
	t.Parallel()
	r := newRig(calls("ok"), looptest.Text("one"), calls("ok"), looptest.Text("two"))
	r.cfg.Agent.Limits.MaxSteps = 2
	run := r.start(t)
	for _, want := range []string{"one", "two"} {
		answer, err := run.Say(t.Context(), "next")
		if err != nil || answer.Text != want || answer.Reason != schema.ReasonDone {
			t.Fatalf("answer %+v, %v", answer, err)
		}
	}
	if err := run.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var c schema.Close
	if !r.bus.Fact(run.ID(), schema.CloseKey(), &c) || c.Turns != 4 || c.Calls != 2 || c.State != "done" {
		t.Errorf("close %+v", c)
	}
}

func TestNoLimitsForReplay(t *testing.T) {
	t.Parallel()
	var steps []looptest.Step
	for range 30 {
		steps = append(steps, calls("fail"))
	}
	r := newRig(steps...)
	r.cfg.NoLimits = true
	answer, run := r.run(t)
	if answer.Reason != schema.ReasonEnd || answer.Error != "" || run.State().Turns() != 30 {
		t.Errorf("answer %+v after %d turns", answer, run.State().Turns())
	}
}

func TestRetryHonoursRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(modelError(model.RateLimited, 7*time.Second), modelError(model.Unavailable, 0), looptest.Text("at last"))
		began := time.Now()
		answer, _ := r.run(t)
		took := time.Since(began)
		if answer.Text != "at last" || took < 7750*time.Millisecond || took > 8*time.Second {
			t.Errorf("answer %+v after %s", answer, took)
		}
		retries := r.events.Of(loop.EventModelRetry)
		if len(retries) != 2 || retries[0].WaitMS != 7000 || retries[0].Attempt != 2 || retries[1].Attempt != 3 {
			t.Errorf("retries %+v", retries)
		}
	})
}

func TestRetriesEnd(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		step     looptest.Step
		reason   schema.Reason
		requests int
	}{
		{"unavailable", modelError(model.Unavailable, 0), schema.ReasonModel, 5},
		{"rate limited", modelError(model.RateLimited, time.Second), schema.ReasonModel, 5},
		{"Retry-After beyond the wall clock", modelError(model.RateLimited, time.Hour), schema.ReasonModel, 1},
		{"bad key", modelError(model.Auth, 0), schema.ReasonAuth, 1},
		{"overflow", modelError(model.Overflow, 0), schema.ReasonContext, 1},
		{"refused", modelError(model.Refused, 0), schema.ReasonRefused, 1},
		{"bad request", modelError(model.BadRequest, 0), schema.ReasonModel, 1},
		{"any error", looptest.Fail(errors.New("no such host")), schema.ReasonModel, 1},
		{"panic", func(context.Context, *model.Request) (*model.Response, error) { panic("oh") }, schema.ReasonModel, 1},
		{"nothing", func(context.Context, *model.Request) (*model.Response, error) { return nil, nil }, schema.ReasonModel, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig()
				r.model = looptest.Always(tt.step)
				r.cfg.Model = r.model
				answer, _ := r.run(t)
				if answer.Reason != tt.reason || answer.Error == "" || len(r.model.Requests()) != tt.requests {
					t.Errorf("answer %+v after %d requests", answer, len(r.model.Requests()))
				}
			})
		})
	}
}

func TestFinishWithoutCalls(t *testing.T) {
	t.Parallel()
	tests := []struct {
		finish schema.Finish
		reason schema.Reason
		failed bool
	}{
		{schema.FinishStop, schema.ReasonDone, false},
		{"", schema.ReasonDone, false},
		{schema.FinishLength, schema.ReasonDone, true},
		{schema.FinishRefused, schema.ReasonRefused, true},
	}
	for _, tt := range tests {
		answer, _ := newRig(looptest.Answer(model.Response{Finish: tt.finish})).run(t)
		if answer.Reason != tt.reason || (answer.Error != "") != tt.failed || answer.Text != "" {
			t.Errorf("finish %q: answer %+v", tt.finish, answer)
		}
	}
}

func TestRegistryError(t *testing.T) {
	t.Parallel()
	r := newRig(looptest.Text("never"))
	r.cfg.Registry = noRegistry{}
	answer, _ := r.run(t)
	if answer.Reason != schema.ReasonNoTools || answer.Error != "tool grep has no worker" || len(r.model.Requests()) != 0 {
		t.Errorf("answer %+v", answer)
	}
}

type noRegistry struct{}

func (noRegistry) Tools(context.Context) ([]schema.Tool, error) {
	return nil, errors.New("tool grep has no worker")
}
