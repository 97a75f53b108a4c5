package bus_test

import (
	"context"
	"fmt"
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

// delegation is an agent, boss, that hands the same task to its sub-agents at once and answers with what it reads.
type delegation struct {
	subagents []schema.Subagent
	times     int                                                     // that each is called; 0: once
	work      func(ctx context.Context, agent string) (string, error) // of a sub-agent
}

func (d *delegation) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	if req.Agent != "boss" {
		text, err := d.work(ctx, req.Agent)
		return &model.Response{Text: text, Finish: schema.FinishStop, Usage: schema.Usage{Input: 10}}, err
	}
	var got []string
	r := &model.Response{Finish: schema.FinishCalls}
	for _, m := range req.Messages {
		if m.Role == schema.RoleTool {
			got = append(got, m.Text)
		}
	}
	if len(got) > 0 {
		return &model.Response{Text: strings.Join(got, "\n"), Finish: schema.FinishStop}, nil
	}
	for i, s := range d.subagents {
		for range max(1, d.times) {
			r.Calls = append(r.Calls, schema.RawCall{ID: fmt.Sprint(i), Name: s.ToolName(), Args: `{"task":"help"}`})
		}
	}
	return r, nil
}

// open serves boss and its sub-agents on b.
func (d *delegation) open(t *testing.T, b *bus.Bus, slots int) {
	t.Helper()
	hosted(t, b, bus.Hosting{Slots: slots, Host: newHost(t, b, d, nil, func(cfg *loop.HostConfig) {
		cfg.Find = func(name string) (schema.AgentSpec, bool) {
			spec, _ := anyAgent(name)
			if name == "boss" {
				spec.Governance = &schema.Governance{Subagents: d.subagents}
			}
			return spec, true
		}
	})})
}

// TestSubagentsRunAtOnce: the sub-agents of one turn work at the same time, on different orchestrators, and what each
// used counts at their parent.
func TestSubagentsRunAtOnce(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	var all sync.WaitGroup // each waits for the other
	all.Add(2)
	d := &delegation{subagents: []schema.Subagent{{Agent: "anna"}, {Agent: "bert", Name: "the_writer"}}, work: func(_ context.Context, agent string) (string, error) {
		all.Done()
		all.Wait()
		return agent + " helps", nil
	}}
	d.open(t, connect(t, srv), 1)
	d.open(t, connect(t, srv), 1)
	facts := waitClosed(t, b, start(t, b, "boss", `{"task":"go"}`), 20*time.Second)
	want := `{"subagent":"anna","toolName":"subagent_anna","output":"anna helps","steps":1}` + "\n" +
		`{"subagent":"bert","toolName":"the_writer","output":"bert helps","steps":1}`
	if a := answerOf(t, facts, 1); a.Text != want || a.Usage.Input != 20 {
		t.Errorf("answer %+v", a)
	}
	for _, err := range bustest.Check(facts) {
		t.Error(err)
	}
}

// TestSubagentIsTriedAgain: a further attempt is a run of its own that is woken by its task.
func TestSubagentIsTriedAgain(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	var mu sync.Mutex
	tries := 0
	d := &delegation{subagents: []schema.Subagent{{Agent: "anna", Handoff: &schema.Handoff{MaxRetries: 2}}}, work: func(context.Context, string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if tries++; tries < 3 {
			return "", &model.Error{Kind: model.Refused, Message: "broken"}
		}
		return "at last", nil
	}}
	d.open(t, connect(t, srv), 1)
	run := start(t, b, "boss", `{"task":"go"}`)
	facts := waitClosed(t, b, run, 20*time.Second)
	if a := answerOf(t, facts, 1); !strings.Contains(a.Text, `"output":"at last"`) {
		t.Errorf("answer %+v", a)
	}
	for attempt := 1; attempt <= 3; attempt++ {
		for _, err := range bustest.Check(waitClosed(t, b, schema.ChildRun(run, 1, 0, attempt), 10*time.Second)) {
			t.Errorf("attempt %d: %v", attempt, err)
		}
	}
}

// TestD04StopReachesEveryAttempt: a stop of the parent, and the end of an attempt's time, end the attempt that is at work.
func TestD04StopReachesEveryAttempt(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		policy schema.Handoff
		stop   bool
		want   schema.ErrorType
	}{
		"stop":    {schema.Handoff{MaxRetries: 5}, true, schema.Cancelled},
		"timeout": {schema.Handoff{MaxRetries: 1, TimeoutMS: 500}, false, schema.Timeout},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := server(t)
			b := connect(t, srv)
			var mu sync.Mutex
			tries, second := 0, make(chan struct{}, 8)
			d := &delegation{subagents: []schema.Subagent{{Agent: "anna", Handoff: &tt.policy}}, work: func(ctx context.Context, _ string) (string, error) {
				mu.Lock()
				tries++
				first := tries == 1
				mu.Unlock()
				if first {
					return "", &model.Error{Kind: model.Refused, Message: "broken"}
				}
				second <- struct{}{}
				<-ctx.Done()
				return "", ctx.Err()
			}}
			d.open(t, connect(t, srv), 1)
			run := start(t, b, "boss", `{"task":"go"}`)
			<-second
			if tt.stop {
				if _, err := b.StopRun(t.Context(), run, "enough"); err != nil {
					t.Fatal(err)
				}
			}
			if got := outcomes(t, waitClosed(t, b, run, 30*time.Second)); !slices.Equal(got, []schema.ErrorType{tt.want}) {
				t.Errorf("outcomes %v", got)
			}
			waitClosed(t, b, schema.ChildRun(run, 1, 0, 2), 10*time.Second)
			if facts, err := b.Facts(t.Context(), schema.ChildRun(run, 1, 0, 3), 0); err != nil || len(facts) > 0 {
				t.Errorf("a third attempt: %v, %v", facts, err)
			}
		})
	}
}

// TestD34SameSubagentManyTimes: one turn hands over to the same sub-agent many times, in many runs at once; each call has
// its own run, which is worked on once.
func TestD34SameSubagentManyTimes(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	var mu sync.Mutex
	worked := 0
	d := &delegation{subagents: []schema.Subagent{{Agent: "anna"}}, times: 8, work: func(context.Context, string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		worked++
		return "helps", nil
	}}
	d.open(t, connect(t, srv), 16)
	d.open(t, connect(t, srv), 16)
	runs := make([]string, 20)
	for i := range runs {
		runs[i] = start(t, b, "boss", `{"task":"go"}`)
	}
	for _, run := range runs {
		facts := waitClosed(t, b, run, time.Minute)
		if got := strings.Count(answerOf(t, facts, 1).Text, `"output":"helps"`); got != d.times {
			t.Errorf("%d results in the answer", got)
		}
		for _, err := range bustest.Check(facts) {
			t.Error(err)
		}
	}
	if mu.Lock(); worked != d.times*len(runs) {
		t.Errorf("the sub-agent was asked %d times", worked)
	}
	mu.Unlock()
}
