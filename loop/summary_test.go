package loop_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// TestFailedCompactionLeavesTheRunAsItWas, and is tried again only some turns later.
func TestFailedCompactionLeavesTheRunAsItWas(t *testing.T) {
	t.Parallel()
	for name, summary := range map[string]looptest.Step{
		"error":   looptest.Fail(errors.New("no such host")),
		"empty":   looptest.Text(" \n"),
		"refused": looptest.Answer(model.Response{Text: "I will not", Finish: schema.FinishRefused}),
		"panic":   func(context.Context, *model.Request) (*model.Response, error) { panic("oh") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tried := 0
			r := compacting(schema.Compaction{Strategy: schema.CompactSummary, MaxTurns: 2})
			r.cfg.Agent.Limits.MaxSteps = 0
			r.model = looptest.Always(func(ctx context.Context, req *model.Request) (*model.Response, error) {
				switch {
				case req.Turn == 0:
					tried++
					return summary(ctx, req)
				case req.Turn == 18:
					return looptest.Text("done")(ctx, req)
				}
				return counted(int64(req.Turn))(ctx, req)
			})
			r.cfg.Model = r.model
			answer, run := r.run(t)
			want := []string{"3: max_turns up to 1 failed", "7: max_turns up to 5 failed", "15: max_turns up to 13 failed"}
			if diff := cmp.Diff(want, r.compactions(t)); diff != "" {
				t.Error(diff)
			}
			if answer.Reason != schema.ReasonDone || tried != 3 || len(r.folds(run)) > 0 || len(run.Messages()) != 2+18+17 {
				t.Errorf("answer %+v, folds %v", answer, r.folds(run))
			}
		})
	}
}

// TestHungSummaryIsBound: a summary that does not come ends after its time, and the turn goes on.
func TestHungSummaryIsBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := compacting(schema.Compaction{Strategy: schema.CompactSummary, MaxTurns: 2}, counted(1), counted(2), looptest.Hang, looptest.Text("done"))
		began := time.Now()
		answer, _ := r.run(t)
		if answer.Text != "done" || time.Since(began) != 2*time.Minute {
			t.Errorf("answer %+v after %s", answer, time.Since(began))
		}
	})
}

// TestStopDuringASummary: the run is stopped, and no model is asked any more.
func TestStopDuringASummary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := compacting(schema.Compaction{Strategy: schema.CompactSummary, MaxTurns: 2}, counted(1), counted(2), looptest.Hang, looptest.Text("never"))
		run := r.start(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := run.Say(ctx, "go")
		if !errors.Is(err, loop.ErrStopped) || len(r.model.Requests()) != 3 || len(r.folds(run)) > 0 {
			t.Errorf("error %v after %d requests", err, len(r.model.Requests()))
		}
		r.checkEvents(t)
	})
}

// TestSummaryIsRetried as any request is.
func TestSummaryIsRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := compacting(schema.Compaction{Strategy: schema.CompactSummary, MaxTurns: 2}, counted(1), counted(2),
			modelError(model.RateLimited, time.Second), looptest.Text("so far"), looptest.Text("done"))
		answer, run := r.run(t)
		if answer.Text != "done" || len(r.folds(run)) != 1 || len(r.events.Of(loop.EventModelRetry)) != 1 {
			t.Errorf("answer %+v, folds %v", answer, r.folds(run))
		}
	})
}
