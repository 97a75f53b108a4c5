package loop_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// weakPoints are the points in which the runtime of the seed tools-and-registry is weak, and the tests which show that
// ours is not. A test is named by its directory and its name.
var weakPoints = map[int]struct {
	point string
	shown []string
}{
	1: {"invalid calls' results come before any valid one", []string{
		"loop.TestResultsInCallOrder", "loop.TestSequentialInvalidInItsPlace", "loop/memory.TestAnyOrderGivesTheSameMemory",
	}},
	2: {"no cap, no timeout per call, wall clock only between steps", []string{
		"loop.TestResultsInCallOrder", "loop.TestCallTimeoutLeavesSiblings", "loop.TestD06HungToolEndsByDefault", "loop.TestHungModelIsBoundByWallClock",
		"loop.TestWallClockEndsCallsAndStartsNone",
	}},
	3: {"results only after the slowest call, no progress", []string{
		"loop.TestSettledOnArrivalResultInOrder", "loop.TestProgressEndsWithItsCall", "executor/toolkit.TestOutputProgress",
	}},
	4: {"an approval overwrites calls that have run", []string{
		"loop.TestD01SiblingsDoNotRunAgain", "loop.TestD02AnsweredInAnyOrder",
	}},
	5: {"a refused handoff aborts the run and leaves calls without result", []string{
		"loop.TestHandoffPolicy", "loop.TestHandoffIsCheckedAgain",
	}},
	6: {"runs at the same time cancel each other", []string{
		"loop.TestStopIsOfOneRun", "loop.TestD34ManyRunsShareOneAgent",
	}},
	7: {"a limit gives no final output and no error; a failure no error and no end", []string{
		"loop.TestLimitsEndWithOneTurnWithoutTools", "loop.TestFailedExchangeInOrder", "loop/looptest.TestCheckFindsBrokenStreams",
	}},
	8: {"ids start anew in each exchange, double ones are not found, memory and result disagree", []string{
		"loop.TestLabelsOfAllExchangesDiffer", "loop.TestA10DuplicateLabels", "schema.TestA10LabelsProperty", "schema.TestA10ResultBearsTheLabel",
	}},
	9: {"a streamed call is told twice", []string{
		"loop.TestStreamedCallIsToldOnce",
	}},
	10: {"a hook that fails kills the run, what it changes is not validated, what it blocks is no failure", []string{
		"loop.TestGuardDecisions", "loop.TestGuardChangedArgumentsAreValidatedAgain", "loop.TestPromptBlocked", "executor.TestGuardsLogPanics", "schema.TestOutcomes",
	}},
	11: {"rules of tools hard-wired by name, calls without arguments refused", []string{
		"schema.TestNormalise", "executor.TestExecuteArguments", "executor/toolkit.TestBashRules",
	}},
	12: {"a wrapper hides what its tool tells", []string{
		"executor.TestWrappersHideNothing",
	}},
	13: {"parallel handoffs pass the depth limit", []string{
		"loop.TestHandoffDepth", "bus.TestD34SameSubagentManyTimes",
	}},
	14: {"a failing input filter gives a start without end; interrupts and approvals are retried", []string{
		"loop.TestHandoffPolicy", "loop.TestHandoffEvents", "loop.TestStoppedHandoffIsNotRetried", "loop.TestStopBetweenAttempts",
	}},
	15: {"a fallback is a success", []string{
		"loop.TestHandoffPolicy", "loop.TestHandoffRetries",
	}},
	16: {"a handoff that times out loses its events", []string{
		"loop.TestHandoffThatTimesOutHasItsEnd", "loop.TestHandoffTimeout", "loop.TestHandoffEvents",
	}},
	17: {"one run id for all runs of a session", []string{
		"loop.TestEachRunHasItsID", "loop.TestStartExistingRun",
	}},
	18: {"nobody can approve, the host has to run it all again", []string{
		"bus.TestD07AnsweredFromAnywhere", "loop.TestD07AnsweredAfterARestart", "cmd/orchestrator.TestGovernedExample",
	}},
	34: {"identical calls are taken for one, and a crash after an effect repeats it", []string{
		"loop.TestIdenticalCallsEachRun", "loop.TestD35ResumeByPosition", "loop.TestD12ForegroundKilledAtEveryStep", "bus.TestRunOnceDeliveredElsewhereWhileItRuns",
	}},
}

// TestWeakPointsOfTheSeed: each point is there, and each test that the table names.
func TestWeakPointsOfTheSeed(t *testing.T) {
	t.Parallel()
	want := []int{34}
	for n := 1; n <= 18; n++ {
		want = append(want, n)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(maps.Keys(weakPoints))); diff != "" {
		t.Error(diff)
	}
	for n, p := range weakPoints {
		t.Run(fmt.Sprintf("%d %s", n, p.point), func(t *testing.T) {
			t.Parallel()
			if len(p.shown) == 0 {
				t.Error("no test shows it")
			}
			for _, name := range p.shown {
				if !hasTest(t, name) {
					t.Errorf("there is no test %s", name)
				}
			}
		})
	}
}

// hasTest tells whether a directory of this repository has a test, as in loop/memory.TestMessages.
func hasTest(t *testing.T, name string) bool {
	t.Helper()
	dir, test, _ := strings.Cut(name, ".")
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(dir), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(test) + `\(`)
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if declared.Match(src) {
			return true
		}
	}
	return false
}

// TestStopIsOfOneRun: of two runs of one agent one is cancelled in the middle of a call; the other goes on (point 6).
func TestStopIsOfOneRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.cfg.Events = nil
		r.cfg.Model = stepModel(func(req *model.Request) *model.Response {
			if req.Turn > 1 {
				return &model.Response{Text: "done"}
			}
			return &model.Response{Calls: []schema.RawCall{waitFor("10s")}}
		})
		agent, err := loop.New(r.cfg)
		if err != nil {
			t.Fatal(err)
		}
		left, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ended := make(chan error)
		go func() {
			_, err := agent.Run(left, "go")
			ended <- err
		}()
		if answer, err := agent.Run(t.Context(), "go"); err != nil || answer.Text != "done" {
			t.Errorf("the other run: %+v, %v", answer, err)
		}
		if err := <-ended; err == nil {
			t.Error("the cancelled run ended well")
		}
		if answer, err := agent.Run(t.Context(), "go"); err != nil || answer.Text != "done" {
			t.Errorf("a later run: %+v, %v", answer, err)
		}
	})
}

// TestLabelsOfAllExchangesDiffer: calls without an id get one that no other call of the run has, and the memory shows the
// same one at the call and at its result (point 8).
func TestLabelsOfAllExchangesDiffer(t *testing.T) {
	t.Parallel()
	r := newRig(calls("ok", "echo"), looptest.Text("one"), calls("ok", "echo"), looptest.Text("two"))
	run := r.start(t)
	for range 2 {
		if _, err := run.Say(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for _, m := range results(run) {
		seen[m.Label] = true
	}
	if open := countOpen(run.Messages()); len(seen) != 4 || open != 0 || seen[""] {
		t.Errorf("labels %v, %d results are missing", seen, open)
	}
	if err := run.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestStreamedCallIsToldOnce: a model that streams and answers with calls (point 9).
func TestStreamedCallIsToldOnce(t *testing.T) {
	t.Parallel()
	r := newRig(func(_ context.Context, req *model.Request) (*model.Response, error) {
		req.Delta(model.Delta{Text: "let me "})
		req.Delta(model.Delta{Text: "see"})
		return &model.Response{Text: "let me see", Calls: raw("ok", "echo"), Finish: schema.FinishCalls}, nil
	}, looptest.Text("done"))
	r.run(t)
	var told []int
	for _, e := range r.events.Of(loop.EventToolCall) {
		told = append(told, e.Call.Index)
	}
	if diff := cmp.Diff([]int{0, 1}, told); diff != "" || len(r.events.Of(loop.EventModelDelta)) != 2 {
		t.Errorf("told %v, %d deltas", told, len(r.events.Of(loop.EventModelDelta)))
	}
}

// TestHandoffThatTimesOutHasItsEnd: in parallel with others, too (point 16).
func TestHandoffThatTimesOutHasItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		task := func(name string) schema.RawCall { return schema.RawCall{ID: name, Name: name, Args: `{"task":"help"}`} }
		r := newRig(looptest.Calls(task("subagent_anna"), task("subagent_bert")), looptest.Text("done"))
		for _, id := range []string{"anna", "bert"} {
			r.bus.Tool(schema.Tool{Name: id, Queue: schema.QueueAgents}, func(ctx context.Context, _ *schema.Call) (string, error) {
				if id == "anna" {
					<-ctx.Done()
				}
				return "fine", ctx.Err()
			})
		}
		r.cfg.Agent.Parallel = schema.Parallel{Calls: true, TimeoutMS: 5000}
		r.cfg.Agent.Governance = &schema.Governance{Subagents: []schema.Subagent{{Agent: "anna"}, {Agent: "bert"}}}
		r.run(t)
		ends := map[string]string{}
		for _, e := range r.events.Of(loop.EventHandoffEnd) {
			ends[e.Handoff.Subagent] = e.Handoff.Status
		}
		if diff := cmp.Diff(map[string]string{"anna": "failed", "bert": "completed"}, ends); diff != "" {
			t.Error(diff)
		}
	})
}

// TestEachRunHasItsID: also those of one agent, at the same time (point 17).
func TestEachRunHasItsID(t *testing.T) {
	t.Parallel()
	r := newRig()
	r.cfg.Events = nil
	seen := map[string]bool{}
	for range 5 {
		run := r.start(t)
		seen[run.ID()] = true
	}
	if len(seen) != 5 || seen[""] {
		t.Errorf("ids %v", seen)
	}
}

// TestIdenticalCallsEachRun: a model that asks for the same thing twice gets it twice, also when the owner dies between
// (point 34).
func TestIdenticalCallsEachRun(t *testing.T) {
	t.Parallel()
	s := &scatter{hosting: newHosting(map[int]*model.Response{
		1: {Calls: raw("count", "count"), Finish: schema.FinishCalls}, 2: {Calls: raw("count"), Finish: schema.FinishCalls},
	})}
	const untilTheFirstResult = 5 // open, own, say, turn, result
	s.host(t, untilTheFirstResult).Take(t.Context(), starter("r", `{"task":"go"}`))
	if got := s.host(t, forever).Take(t.Context(), starter("r", `{"task":"go"}`)); got.Act != schema.TakenDone {
		t.Fatalf("%+v", got)
	}
	if diff := cmp.Diff(map[string]int{"r/1.0": 1, "r/1.1": 1, "r/2.0": 1}, s.ran); diff != "" {
		t.Error(diff)
	}
}
