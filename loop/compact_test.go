package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// compacting returns a rig whose memory is compacted.
func compacting(c schema.Compaction, steps ...looptest.Step) *rig {
	r := newRig(steps...)
	r.cfg.Agent.Compaction = &c
	return r
}

// counted answers with a call for a request of so many tokens.
func counted(tokens int64) looptest.Step { return padded(tokens, 0) }

// padded is counted with a call and a result that are longer by pad bytes each.
func padded(tokens int64, pad int) looptest.Step {
	args := fmt.Sprintf(`{"n":%d}`, tokens)
	if pad > 0 {
		args = fmt.Sprintf(`{"n":%d,"pad":"%s"}`, tokens, strings.Repeat("x", pad))
	}
	return looptest.Answer(model.Response{Calls: []schema.RawCall{{Name: "echo", Args: args}}, Usage: schema.Usage{Input: tokens}})
}

// folds returns the keys of the folds of a run.
func (r *rig) folds(run *loop.Run) []string {
	return slices.DeleteFunc(r.bus.Keys(run.ID()), func(k string) bool { return !strings.HasPrefix(k, "fold.") })
}

// compactions returns what the events say of each compaction.
func (r *rig) compactions(t *testing.T) []string {
	t.Helper()
	var list []string
	starts := r.events.Of(loop.EventCompactionStart)
	for i, e := range r.events.Of(loop.EventCompactionEnd) {
		if starts[i].Turn != e.Turn || starts[i].Compaction.UpTo != e.Compaction.UpTo {
			t.Errorf("start %+v, end %+v", starts[i], e)
		}
		state := "done"
		if e.Error != "" {
			state = "failed"
		}
		list = append(list, fmt.Sprintf("%d: %s up to %d %s", e.Turn, e.Compaction.Trigger, e.Compaction.UpTo, state))
	}
	return list
}

func lastRequest(r *rig) []schema.Message {
	reqs := r.model.Requests()
	return reqs[len(reqs)-1].Messages
}

func TestCompactionByTurns(t *testing.T) {
	t.Parallel()
	var steps []looptest.Step
	for n := range 7 {
		steps = append(steps, counted(int64(n+1)))
	}
	r := compacting(schema.Compaction{Strategy: schema.CompactWindow, MaxTurns: 4, Preserve: 2}, append(steps, looptest.Text("done"))...)
	answer, run := r.run(t)
	if answer.Text != "done" {
		t.Errorf("answer %+v", answer)
	}
	if diff := cmp.Diff([]string{"5: max_turns up to 2 done", "7: max_turns up to 4 done"}, r.compactions(t)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"fold.2", "fold.4"}, r.folds(run)); diff != "" {
		t.Error(diff)
	}
	var seen []int
	for n := 1; n <= 8; n++ {
		seen = append(seen, run.State().Turn(n).Fold)
	}
	if diff := cmp.Diff([]int{0, 0, 0, 0, 2, 2, 4, 4}, seen); diff != "" {
		t.Error(diff)
	}
	want := []string{"Be brief.", "[Turns 1 to 4 of this conversation were left out to save space.]", "go", "", `{"n":5}`, "", `{"n":6}`, "", `{"n":7}`}
	if diff := cmp.Diff(want, texts(lastRequest(r))); diff != "" {
		t.Error(diff)
	}
}

// TestCompactionByRatio: what the model counts decides, and what came since; after a fold its own count is needed again.
func TestCompactionByRatio(t *testing.T) {
	t.Parallel()
	summary := looptest.Answer(model.Response{Text: " went well ", Model: "m-1", Usage: schema.Usage{Input: 700, Output: 30}})
	r := compacting(schema.Compaction{Strategy: schema.CompactSummary, ContextRatio: 0.5, Preserve: 1},
		padded(500, 300), padded(700, 300), padded(920, 300), summary, counted(50), looptest.Text("done"))
	r.cfg.Agent.Model.ContextWindow = 2000
	answer, run := r.run(t)
	if diff := cmp.Diff([]string{"4: context_ratio up to 2 done"}, r.compactions(t)); diff != "" {
		t.Error(diff)
	}
	var f schema.Fold
	if !r.bus.Fact(run.ID(), schema.FoldKey(2), &f) {
		t.Fatalf("facts %v", r.bus.Keys(run.ID()))
	}
	f.V, f.AtMS = 0, 0
	want := schema.Fold{
		N: 2, Own: 1, Strategy: "summary", Trigger: "context_ratio", Turns: 3, Text: "went well", Model: "m-1",
		Usage: schema.Usage{Input: 700, Output: 30},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Error(diff)
	}
	if answer.Usage.Input != 500+700+920+700+50 || answer.Usage.Output != 30 {
		t.Errorf("usage %+v", answer.Usage)
	}
	asked := r.model.Requests()[3]
	if len(asked.Tools) != 0 || asked.Turn != 0 || asked.Delta != nil || len(asked.Messages) != 2 {
		t.Errorf("the summary's request %+v", asked)
	}
	for _, part := range []string{"user: go", `call of echo: {"n":700,`, `result of echo: {"n":700,`} {
		if !strings.Contains(asked.Messages[1].Text, part) {
			t.Errorf("%q is not in what is summarised: %q", part, asked.Messages[1].Text)
		}
	}
	if strings.Contains(asked.Messages[1].Text, `"n":920`) {
		t.Error("a turn that stays is summarised")
	}
	msgs := lastRequest(r)
	if !strings.HasPrefix(msgs[1].Text, "[Turns 1 to 2 ") || !strings.HasSuffix(msgs[1].Text, "\n\nwent well") || msgs[2].Text != "go" || len(msgs) != 7 {
		t.Errorf("messages %q", texts(msgs))
	}
}

// TestCompactionByEstimate: a provider that counts nothing.
func TestCompactionByEstimate(t *testing.T) {
	t.Parallel()
	uncounted := func(n int) looptest.Step {
		return looptest.Calls(schema.RawCall{Name: "echo", Args: fmt.Sprintf(`{"x":"%d%s"}`, n, strings.Repeat("x", 2000))})
	}
	r := compacting(schema.Compaction{Strategy: schema.CompactWindow, ContextRatio: 0.5}, uncounted(1), uncounted(2), uncounted(3), looptest.Text("done"))
	r.cfg.Agent.Model.ContextWindow = 6000
	_, run := r.run(t)
	if diff := cmp.Diff([]string{"4: context_ratio up to 2 done"}, r.compactions(t)); diff != "" {
		t.Fatal(diff)
	}
	end := r.events.Of(loop.EventCompactionEnd)[0].Compaction.Tokens
	if start := r.events.Of(loop.EventCompactionStart)[0].Compaction.Tokens; start < 3000 || end > 1600 || len(r.folds(run)) != 1 {
		t.Errorf("%d tokens before, %d after, folds %v", start, end, r.folds(run))
	}
}

// TestNewestTurnStays: what the model has not seen yet is not taken away because the rest is large, nor is the memory
// compacted on every turn then.
func TestNewestTurnStays(t *testing.T) {
	t.Parallel()
	var steps []looptest.Step
	for n := range 7 {
		steps = append(steps, counted(int64(n+1)*1000))
	}
	r := compacting(schema.Compaction{Strategy: schema.CompactWindow, ContextRatio: 0.5}, append(steps, looptest.Text("done"))...)
	r.cfg.Agent.Model.ContextWindow, r.cfg.Agent.Instructions = 1000, strings.Repeat("Be brief. ", 300)
	r.run(t)
	if diff := cmp.Diff([]string{"3: context_ratio up to 1 done", "7: context_ratio up to 5 done"}, r.compactions(t)); diff != "" {
		t.Error(diff)
	}
	for i, req := range r.model.Requests() {
		if last := req.Messages[len(req.Messages)-1]; i > 0 && last.Text != fmt.Sprintf(`{"n":%d000}`, i) {
			t.Errorf("turn %d does not see the result of the turn before it: %+v", i+1, last)
		}
	}
}

// TestOverflowIsCompactedOnce: the provider knows better than the file how large a prompt may be.
func TestOverflowIsCompactedOnce(t *testing.T) {
	t.Parallel()
	overflow := modelError(model.Overflow, 0)
	tests := []struct {
		name   string
		steps  []looptest.Step
		want   []string
		reason schema.Reason
	}{
		{"in time", []looptest.Step{padded(1, 300), padded(2, 300), padded(3, 300), overflow, looptest.Text("done")}, []string{"4: context_overflow up to 2 done"}, schema.ReasonDone},
		{"too late", []looptest.Step{padded(1, 300), padded(2, 300), padded(3, 300), overflow, overflow}, []string{"4: context_overflow up to 2 done"}, schema.ReasonContext},
		{"nothing to compact", []looptest.Step{overflow}, nil, schema.ReasonContext},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := compacting(schema.Compaction{Strategy: schema.CompactWindow}, tt.steps...)
			answer, _ := r.run(t)
			if diff := cmp.Diff(tt.want, r.compactions(t)); diff != "" || answer.Reason != tt.reason {
				t.Errorf("answer %+v, %s", answer, diff)
			}
		})
	}
}

// TestOverflowEndsTheExchangeNotTheRun: each further message compacts more, so that no run is stuck for ever.
func TestOverflowEndsTheExchangeNotTheRun(t *testing.T) {
	t.Parallel()
	r := compacting(schema.Compaction{Strategy: schema.CompactWindow, Preserve: 8})
	r.model = looptest.Always(func(ctx context.Context, req *model.Request) (*model.Response, error) {
		switch {
		case req.Turn <= 9:
			return counted(int64(req.Turn))(ctx, req)
		case len(req.Messages) > 8:
			return modelError(model.Overflow, 0)(ctx, req)
		}
		return looptest.Text("done")(ctx, req)
	})
	r.cfg.Model = r.model
	run := r.start(t)
	var reasons []schema.Reason
	for len(reasons) < 4 && !slices.Contains(reasons, schema.ReasonDone) {
		a, err := run.Say(t.Context(), "next")
		if err != nil {
			t.Fatal(err)
		}
		reasons = append(reasons, a.Reason)
	}
	if diff := cmp.Diff([]schema.Reason{schema.ReasonContext, schema.ReasonDone}, reasons); diff != "" {
		t.Error(diff)
	}
	if err := run.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.checkEvents(t)
}

// TestFoldOfALostOwnerIsRefused: of two owners only the newer one compacts; the other writes nothing more.
func TestFoldOfALostOwnerIsRefused(t *testing.T) {
	t.Parallel()
	r := compacting(schema.Compaction{Strategy: schema.CompactSummary, MaxTurns: 2}, counted(1), counted(2))
	var run *loop.Run
	r.model = looptest.NewModel(counted(1), counted(2), func(ctx context.Context, req *model.Request) (*model.Response, error) {
		if _, err := r.bus.Append(ctx, run.ID(), schema.CtlKey(2), &schema.Ctl{Act: schema.CtlOwn, Instance: "other"}, schema.Key{}); err != nil {
			return nil, err
		}
		return looptest.Text("so far")(context.WithoutCancel(ctx), req)
	})
	r.cfg.Model = r.model
	run = r.start(t)
	if _, err := run.Say(t.Context(), "go"); !errors.Is(err, loop.ErrFenced) {
		t.Errorf("error %v", err)
	}
	keys := r.bus.Keys(run.ID())
	if keys[len(keys)-1] != "ctl.2" {
		t.Errorf("facts %v", keys)
	}
	r.checkEvents(t)
}

// TestD12KilledAroundAFold kills the owner after each of its steps: the next one has the memory of an undisturbed run.
func TestD12KilledAroundAFold(t *testing.T) {
	t.Parallel()
	answers := map[int]*model.Response{0: {Text: "so far"}}
	for n := 1; n <= 4; n++ {
		answers[n] = &model.Response{Calls: []schema.RawCall{{Name: "count", Args: fmt.Sprintf(`{"n":%d}`, n)}}, Finish: schema.FinishCalls}
	}
	start := func() *hosting {
		h := newHosting(answers)
		h.cfg.Agent.Compaction = &schema.Compaction{Strategy: schema.CompactSummary, MaxTurns: 3, Preserve: 1}
		return h
	}
	whole := start()
	whole.host(t, forever, false).Take(t.Context(), starter("r", `{"task":"go"}`))
	want := whole.memory(t, "r")
	if f := want.Fold(); f == nil || f.N != 2 || want.Closed() == nil {
		t.Fatalf("facts %v", whole.bus.Keys("r"))
	}
	for steps := 0; ; steps++ {
		h := start()
		if h.host(t, steps, true).Take(t.Context(), starter("r", `{"task":"go"}`)).Act == schema.TakenDone {
			break
		}
		h.host(t, forever, false).Take(t.Context(), starter("r", `{"task":"go"}`))
		got := h.memory(t, "r")
		if diff := cmp.Diff(want.Messages(), got.Messages()); diff != "" || got.Closed() == nil {
			t.Errorf("after %d steps: %s; facts %v", steps, diff, h.bus.Keys("r"))
		}
	}
}

func TestCompactionIsValidated(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]schema.Compaction{
		"strategy":   {},
		"ratio":      {Strategy: schema.CompactWindow, ContextRatio: 1.5},
		"max turns":  {Strategy: schema.CompactWindow, MaxTurns: 1},
		"keep fewer": {Strategy: schema.CompactWindow, MaxTurns: 3, Preserve: 3},
	} {
		r := compacting(c)
		if _, err := loop.New(r.cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
