package loop_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// remembering is a town in which tester reuses the session of anna.
func remembering(left int, after bool, answers map[string]map[int]*model.Response) *town {
	w := handing(left, after, schema.Handoff{}, answers)
	of := w.shape
	w.shape = func(spec *schema.AgentSpec) {
		if of(spec); spec.ID == "tester" {
			spec.Governance.Subagents[0].Session = schema.SessionReuse
		}
	}
	return w
}

// task is a call of a sub-agent's tool.
func task(tool, text string) schema.RawCall {
	return schema.RawCall{Name: tool, Args: fmt.Sprintf(`{"task":%q}`, text)}
}

func turnOf(calls ...schema.RawCall) *model.Response {
	return &model.Response{Calls: calls, Finish: schema.FinishCalls}
}

// listens has anna answer with all that was said to her, and fail where a task says so. It returns what tells how many of
// her were at work at once.
func (w *town) listens() (most func() int) {
	var mu sync.Mutex
	now, most0 := 0, 0
	w.think = func(_ context.Context, req *model.Request) (*model.Response, error, bool) {
		if req.Agent != "anna" {
			return nil, nil, false
		}
		mu.Lock()
		now++
		most0 = max(most0, now)
		mu.Unlock()
		defer func() { mu.Lock(); now--; mu.Unlock() }()
		var said []string
		for _, m := range req.Messages {
			if m.Role == schema.RoleUser {
				said = append(said, m.Text)
			}
		}
		if said[len(said)-1] == "fail" {
			return nil, broken, true
		}
		return &model.Response{Text: strings.Join(said, ","), Finish: schema.FinishStop}, nil, true
	}
	return func() int { mu.Lock(); defer mu.Unlock(); return most0 }
}

// heard returns what the sub-agent of call i of turn n answered, "" when it failed.
func (w *town) heard(t *testing.T, n, i int) string {
	t.Helper()
	r := w.memory(t, "r").Result(n, i)
	if r == nil || !r.OK {
		return ""
	}
	_, text, _ := strings.Cut(r.Output, `"output":"`)
	text, _, _ = strings.Cut(text, `"`)
	return text
}

// sessions is a run in which two turns hand over tasks to anna, beside others.
func sessions() map[string]map[int]*model.Response {
	return map[string]map[int]*model.Response{"tester": {
		1: turnOf(task("subagent_anna", "one"), task("the_writer", "aside"), task("subagent_anna", "fail"), task("subagent_anna", "two"), schema.RawCall{Name: "count"}, task("subagent_anna", "fail")),
		2: turnOf(task("subagent_anna", "three"), task("the_writer", "aside")),
	}}
}

// TestSessionReuse: each task of a sub-agent whose session is reused goes on with the one before that succeeded, one after
// the other, though the calls of a turn run at once; others begin anew.
func TestSessionReuse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := remembering(forever, false, sessions())
		most := w.listens()
		w.go1(t)
		for call, want := range map[[2]int]string{{1, 0}: "one", {1, 2}: "", {1, 3}: "one,two", {2, 0}: "one,two,three", {1, 1}: "bert after 2 messages", {2, 1}: "bert after 2 messages"} {
			if got := w.heard(t, call[0], call[1]); got != want {
				t.Errorf("call %v: %q, want %q", call, got, want)
			}
		}
		if most() != 1 {
			t.Errorf("%d at once", most())
		}
		for call, want := range map[[2]int]string{{1, 0}: "", {1, 2}: schema.ChildRun("r", 1, 0, 1), {1, 3}: schema.ChildRun("r", 1, 0, 1), {2, 0}: schema.ChildRun("r", 1, 3, 1)} {
			var open schema.Open
			if !w.bus.Fact(schema.ChildRun("r", call[0], call[1], 1), schema.OpenKey(), &open) || open.Handoff.Session != schema.SessionReuse || open.Handoff.Previous != want {
				t.Errorf("call %v: open %+v", call, open.Handoff)
			}
		}
	})
}

// TestSessionReuseSurvivesKills kills whoever works on the parent or a sub-agent after each step over all of them: memory and
// sessions are those of an undisturbed run.
func TestSessionReuseSurvivesKills(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := func(left int, after bool) (*town, []string) {
			w := remembering(left, after, sessions())
			most := w.listens()
			all := []string{fmt.Sprint(most())}
			for _, m := range w.go1(t).Messages() {
				all = append(all, m.Text)
			}
			if most() != 1 {
				t.Errorf("killed after %d steps: %d of the sub-agent at once", left, most())
			}
			for _, i := range []int{0, 2, 3} {
				var open schema.Open
				w.bus.Fact(schema.ChildRun("r", 1, i, 1), schema.OpenKey(), &open)
				all = append(all, open.Handoff.Previous)
			}
			return w, all
		}
		_, want := begin(forever, false)
		kills := 0
		for _, after := range []bool{false, true} {
			for steps := 0; ; steps++ {
				w, got := begin(steps, after)
				if w.left < forever/2 {
					break // nobody was killed
				}
				kills++
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("killed after %d steps (after: %t): %s", steps, after, diff)
				}
			}
		}
		if kills < 60 {
			t.Errorf("only %d kills", kills)
		}
	})
}

// TestSessionReuseOfRetries: the next task goes on with the attempt that answered, and a further attempt with the task
// before.
func TestSessionReuseOfRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := remembering(forever, false, map[string]map[int]*model.Response{
			"tester": {1: turnOf(task("subagent_anna", "one"), task("subagent_anna", "two"))},
		})
		of := w.shape
		w.shape = func(spec *schema.AgentSpec) {
			if of(spec); spec.ID == "tester" {
				spec.Governance.Handoff = &schema.Handoff{MaxRetries: 2}
			}
		}
		w.listens()
		listen, tries := w.think, 0
		w.think = func(ctx context.Context, req *model.Request) (*model.Response, error, bool) {
			if req.Agent == "anna" {
				if tries++; tries%2 == 1 {
					return nil, broken, true
				}
			}
			return listen(ctx, req)
		}
		w.go1(t)
		if got := w.heard(t, 1, 1); got != "one,two" {
			t.Errorf("heard %q", got)
		}
		for attempt := 1; attempt <= 2; attempt++ {
			var open schema.Open
			if !w.bus.Fact(schema.ChildRun("r", 1, 1, attempt), schema.OpenKey(), &open) || open.Handoff.Previous != schema.ChildRun("r", 1, 0, 2) || len(open.Before) != 2 {
				t.Errorf("attempt %d: %+v", attempt, open)
			}
		}
	})
}

// TestSessionOfAnotherRun: a call that names a run which is no earlier task of the same sub-agent, of the same parent, is
// refused, whoever published it: it would show that run's conversation.
func TestSessionOfAnotherRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := remembering(forever, false, sessions())
		w.listens()
		w.go1(t)
		secret := schema.NewID()
		m := starter(secret, `{"task":"secret"}`)
		w.post(m)
		w.live(t)
		for i, run := range []string{
			secret, "r", schema.ChildRun("r", 1, 1, 1), // of the sub-agent whose sessions are new
			schema.ChildRun("r", 2, 0, 1), // a later task
		} {
			c := &schema.Call{Run: "r", Turn: 1, Index: 10 + i, Tool: "anna", As: "subagent_anna", Source: schema.SourceSubagent, Args: `{"task":"tell"}`, Previous: run}
			w.post(schema.RunMessage{Run: c.StartKey(schema.QueueAgents).Run, Call: c})
			w.live(t)
			var r schema.Result
			if !w.bus.Fact("r", c.ResultKey(schema.QueueAgents), &r) || !strings.HasPrefix(r.Output, "DENIED: ") || len(w.bus.Keys(c.StartKey(schema.QueueAgents).Run)) > 0 {
				t.Errorf("goes on with %s: %+v", run, r)
			}
		}
	})
}

// TestSessionThatIsGone: a conversation that is not kept any more is begun anew, and the sub-agent is told.
func TestSessionThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := remembering(forever, false, nil)
		w.listens()
		w.go1(t)
		c := &schema.Call{Run: "r", Turn: 1, Index: 1, Tool: "anna", As: "subagent_anna", Source: schema.SourceSubagent, Args: `{"task":"now"}`, Previous: schema.NewID()}
		w.post(schema.RunMessage{Run: c.StartKey(schema.QueueAgents).Run, Call: c})
		w.live(t)
		var r schema.Result
		if !w.bus.Fact("r", c.ResultKey(schema.QueueAgents), &r) || !strings.Contains(r.Output, "[The tasks before this one are not kept any more.],now") {
			t.Errorf("%+v", r)
		}
	})
}

// TestSessionWaitsForApproval: a task waits for the one before it that a person is asked about, which is nothing that keeps
// the run from being left.
func TestSessionWaitsForApproval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := remembering(forever, false, map[string]map[int]*model.Response{
			"tester": {1: turnOf(task("subagent_anna", "one"), task("subagent_anna", "two"))},
		})
		w.listens()
		w.setUp = func(c *loop.HostConfig) { c.Guards = []loop.Guard{askAbout("one")} }
		began := time.Now()
		w.go1(t)
		if got := []string{w.heard(t, 1, 0), w.heard(t, 1, 1)}; !slices.Equal(got, []string{"", "two"}) {
			t.Errorf("heard %q", got)
		}
		var open schema.Open // nobody answers, so the question expires
		if w.bus.Fact(schema.ChildRun("r", 1, 1, 1), schema.OpenKey(), &open); time.UnixMilli(open.AtMS).Sub(began) < 24*time.Hour {
			t.Errorf("the second task began after %v", time.UnixMilli(open.AtMS).Sub(began))
		}
	})
}

// askAbout asks a person about the tasks with a text.
type askAbout string

func (a askAbout) Decide(_ context.Context, c *schema.TurnCall) schema.Decision {
	if strings.Contains(string(c.Args), string(a)) {
		return schema.Decision{Action: schema.ActionAsk, Rule: "ask"}
	}
	return schema.Decision{}
}

func (askAbout) Settle(context.Context, *schema.TurnCall, *schema.Result) (string, bool) {
	return "", false
}

// TestSessionIsCompacted: a session that grows is kept small by the compaction of the sub-agent, which counts the tasks
// before; without one its beginning is left out.
func TestSessionIsCompacted(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 400)
	for name, tt := range map[string]struct {
		shape func(*schema.AgentSpec)
		want  string
		fold  bool
	}{
		"window": {func(s *schema.AgentSpec) {
			s.Compaction = &schema.Compaction{Strategy: schema.CompactWindow, MaxTurns: 2}
		}, "[The tasks before this one were left out to save space.],three", true},
		"summary": {func(s *schema.AgentSpec) {
			s.Compaction = &schema.Compaction{Strategy: schema.CompactSummary, MaxTurns: 2}
		}, "[The tasks before this one, summarised. What they did is done; go on from there.]", true},
		"small enough": {func(s *schema.AgentSpec) {
			s.Compaction = &schema.Compaction{Strategy: schema.CompactWindow, MaxTurns: 3}
		}, "one," + long, false},
		"no room": {func(s *schema.AgentSpec) { s.Model.ContextWindow = 900 }, "[The beginning of this conversation was left out to save space.],three", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := remembering(forever, false, map[string]map[int]*model.Response{
					"tester": {1: turnOf(task("subagent_anna", "one"), task("subagent_anna", long), task("subagent_anna", "three"))},
				})
				of := w.shape
				w.shape = func(spec *schema.AgentSpec) {
					if of(spec); spec.ID == "anna" {
						tt.shape(spec)
					}
				}
				w.listens()
				w.go1(t)
				m := w.memory(t, schema.ChildRun("r", 1, 2, 1))
				if got := m.Answer(1).Text; !strings.HasPrefix(got, tt.want) || !strings.HasSuffix(got, ",three") {
					t.Errorf("heard %.200q", got)
				}
				if f := m.Fold(); (f != nil && f.N == 0) != tt.fold {
					t.Errorf("fold %+v", f)
				}
			})
		})
	}
}
