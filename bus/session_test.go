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

// dialogue is an agent, boss, that hands three tasks to anna in one turn and another one in the next. She answers with
// all that was said to her; gate may hold her up.
type dialogue struct {
	gate func(ctx context.Context, said []string) error
	long int // bytes of her first answer, beside the words

	mu        sync.Mutex
	now, most int // at work
}

func (d *dialogue) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	var said []string
	for _, m := range req.Messages {
		if m.Role == schema.RoleUser {
			said = append(said, m.Text)
		}
	}
	if req.Agent == "anna" {
		r, err := d.listen(ctx, said)
		if d.long > 0 && len(said) == 1 && err == nil {
			r.Text += strings.Repeat("x", d.long)
		}
		for _, m := range req.Messages {
			if d.long > 0 && len(said) > 1 && m.Role == schema.RoleAssistant && len(m.Text) > d.long {
				r.Text = "I said much: " + r.Text
			}
		}
		return r, err
	}
	tasks := map[int][]string{1: {"one", "two", "three"}, 2: {"four"}}[req.Turn]
	if len(tasks) == 0 {
		return &model.Response{Text: req.Messages[len(req.Messages)-1].Text, Finish: schema.FinishStop}, nil
	}
	r := &model.Response{Finish: schema.FinishCalls}
	for i, task := range tasks {
		r.Calls = append(r.Calls, schema.RawCall{ID: fmt.Sprint(req.Turn, i), Name: "subagent_anna", Args: fmt.Sprintf(`{"task":%q}`, task)})
	}
	return r, nil
}

func (d *dialogue) listen(ctx context.Context, said []string) (*model.Response, error) {
	d.mu.Lock()
	d.now++
	d.most = max(d.most, d.now)
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.now--
		d.mu.Unlock()
	}()
	if d.gate != nil {
		if err := d.gate(ctx, said); err != nil {
			return nil, err
		}
	}
	return &model.Response{Text: strings.Join(said, " "), Finish: schema.FinishStop}, nil
}

// open serves both agents on b. session is that of anna.
func (d *dialogue) open(t *testing.T, b *bus.Bus) {
	t.Helper()
	h, err := loop.NewHost(loop.HostConfig{
		Config: loop.Config{Bus: b, Instance: b.Instance(), Principal: somebody()},
		Find: func(name string) (schema.AgentSpec, bool) {
			spec := schema.AgentSpec{ID: name, Limits: schema.DefaultLimits(), Parallel: schema.Parallel{Calls: true}, Model: schema.ModelSpec{ContextWindow: 1 << 20}}
			if name == "boss" {
				spec.Governance = &schema.Governance{Subagents: []schema.Subagent{{Agent: "anna", Session: schema.SessionReuse}}}
			}
			return spec, true
		},
		Equip: func(context.Context, schema.AgentSpec) (loop.Model, loop.Registry, error) { return d, nil, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	hosted(t, b, bus.Hosting{Slots: 4, Host: h, Agents: []schema.Tool{schema.AgentTool(schema.AgentSpec{ID: "boss"}), schema.AgentTool(schema.AgentSpec{ID: "anna"})}})
}

// checkDialogue looks at the facts of a dialogue that has ended.
func checkDialogue(t *testing.T, b *bus.Bus, run string, facts []schema.Fact) {
	t.Helper()
	if a := answerOf(t, facts, 1); !strings.Contains(a.Text, `"output":"one two three four"`) {
		t.Errorf("answer %+v", a)
	}
	for _, err := range bustest.Check(facts) {
		t.Error(err)
	}
	var last uint64
	for i, call := range [][2]int{{1, 0}, {1, 1}, {1, 2}, {2, 0}} {
		child := waitClosed(t, b, schema.ChildRun(run, call[0], call[1], 1), 20*time.Second)
		for _, err := range bustest.Check(child) {
			t.Errorf("task %d: %v", i+1, err)
		}
		end := slices.IndexFunc(child, func(f schema.Fact) bool { return f.Key == schema.AnswerKey(1) })
		if end < 0 || child[0].Seq < last {
			t.Fatalf("task %d began before the one before was answered: %+v", i+1, child)
		}
		last = child[end].Seq
	}
}

// TestD34SessionIsReused: four tasks of a sub-agent whose session is reused, three of one turn that runs its calls at
// once, go on with each other in their order, on two orchestrators.
func TestD34SessionIsReused(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	d := &dialogue{}
	d.open(t, connect(t, srv))
	d.open(t, connect(t, srv))
	runs := make([]string, 4)
	for i := range runs {
		runs[i] = start(t, b, "boss", `{"task":"go"}`)
	}
	for _, run := range runs {
		checkDialogue(t, b, run, waitClosed(t, b, run, 30*time.Second))
	}
}

// TestD12SessionIsTakenOver: the orchestrator is lost that works on the second task of a session; another one goes on, with
// the same session.
func TestD12SessionIsTakenOver(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b, first := connect(t, srv), connect(t, srv)
	stuck, released := make(chan struct{}), make(chan struct{})
	lost := &dialogue{gate: func(ctx context.Context, said []string) error {
		if len(said) == 2 {
			close(stuck)
			<-released // deaf to everything, as a process that is gone
			return context.Canceled
		}
		return nil
	}}
	lost.open(t, first)
	t.Cleanup(sync.OnceFunc(func() { close(released) })) // before the host is waited for
	run := start(t, b, "boss", `{"task":"go"}`)
	<-stuck
	go first.Close() // it waits for the model; to all others this process is gone
	d := &dialogue{}
	d.open(t, connect(t, srv))
	checkDialogue(t, b, run, waitClosed(t, b, run, 40*time.Second))
	if d.most != 1 {
		t.Errorf("%d of the sub-agent at once", d.most)
	}
}

// TestLongSession: a conversation that is larger than a message goes on like any other.
func TestLongSession(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	d := &dialogue{long: schema.MaxInline}
	d.open(t, connect(t, srv))
	run := start(t, b, "boss", `{"task":"go"}`)
	if a := answerOf(t, waitClosed(t, b, run, 30*time.Second), 1); !strings.Contains(a.Text, `"output":"I said much: one two three four"`) {
		t.Errorf("answer %+v", a)
	}
	second := schema.ChildRun(run, 1, 1, 1)
	if data, err := b.Look(t.Context(), second, schema.OpenKey()); err != nil || len(data) > schema.MaxInline {
		t.Errorf("its first fact has %d bytes, %v", len(data), err)
	}
	for info, err := range b.Runs(t.Context()) {
		if err != nil || info.ID == second && info.Open.Agent == nil {
			t.Errorf("run %+v, %v", info, err)
		}
	}
}
