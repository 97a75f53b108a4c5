package loop_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is an agent on a bus in memory.
type rig struct {
	bus    *looptest.Bus
	model  *looptest.Model
	events *looptest.Events
	cfg    loop.Config
}

// newRig returns a rig with the tools ok, fail, hang, wait and echo.
func newRig(steps ...looptest.Step) *rig {
	r := &rig{bus: looptest.NewBus(), model: looptest.NewModel(steps...), events: &looptest.Events{}}
	r.cfg = loop.Config{
		Agent:    schema.AgentSpec{ID: "tester", Instructions: "Be brief.", Limits: schema.DefaultLimits()},
		Model:    r.model,
		Bus:      r.bus,
		Registry: r.bus,
		Events:   r.events.Add,

		Principal: somebody(),
	}
	r.tool("ok", func(context.Context, *schema.Call) (string, error) { return "fine", nil })
	r.tool("fail", func(context.Context, *schema.Call) (string, error) { return "", errors.New("exit status 1") })
	r.tool("mute", func(context.Context, *schema.Call) (string, error) { return "", errors.New("") })
	r.tool("panics", func(context.Context, *schema.Call) (string, error) { panic("boom") })
	r.tool("hang", func(ctx context.Context, _ *schema.Call) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	r.tool("echo", func(_ context.Context, c *schema.Call) (string, error) { return string(c.Args), nil })
	r.tool("wait", wait)
	return r
}

// somebody may do everything.
func somebody() schema.Principal {
	return schema.Principal{ID: "tester", Scopes: []string{"tool:*", "tool:agents/*"}}
}

func (r *rig) tool(name string, run func(context.Context, *schema.Call) (string, error)) {
	r.bus.Tool(schema.Tool{Name: name, Description: name}, run)
}

// wait waits for its argument, such as {"for":"3s"}, and returns it.
func wait(ctx context.Context, c *schema.Call) (string, error) {
	parts := strings.Split(string(c.Args), `"`)
	d, err := time.ParseDuration(parts[3])
	if err != nil {
		return "", err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return d.String(), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func waitFor(d string) schema.RawCall {
	return schema.RawCall{Name: "wait", Args: `{"for":"` + d + `"}`}
}

func calls(names ...string) looptest.Step { return looptest.Calls(raw(names...)...) }

func raw(names ...string) []schema.RawCall {
	calls := make([]schema.RawCall, len(names))
	for i, n := range names {
		calls[i] = schema.RawCall{Name: n}
	}
	return calls
}

// start opens a run and closes it when the test ends, after which the event stream must be in order.
func (r *rig) start(t *testing.T) *loop.Run {
	t.Helper()
	agent, err := loop.New(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	run, err := agent.Start(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// run has one task done, checks the event stream and returns the answer with the run.
func (r *rig) run(t *testing.T) (schema.Answer, *loop.Run) {
	t.Helper()
	run := r.start(t)
	answer, err := run.Say(t.Context(), "go")
	if err != nil {
		t.Fatalf("say: %v", err)
	}
	if err := run.Close(t.Context()); err != nil {
		t.Fatalf("close: %v", err)
	}
	r.checkEvents(t)
	return answer, run
}

func (r *rig) checkEvents(t *testing.T) {
	t.Helper()
	if err := looptest.Check(r.events.List()); err != nil {
		t.Errorf("event stream: %v\n%s", err, r.events.Lines())
	}
}

// results returns the tool messages of a run's memory.
func results(run *loop.Run) []schema.Message {
	var list []schema.Message
	for _, m := range run.Messages() {
		if m.Role == schema.RoleTool {
			list = append(list, m)
		}
	}
	return list
}

func texts(msgs []schema.Message) []string {
	list := make([]string, len(msgs))
	for i, m := range msgs {
		list[i] = m.Text
	}
	return list
}

// errorTypes returns the error type of each result of a turn, "" for a success.
func errorTypes(run *loop.Run, turn int) []schema.ErrorType {
	var types []schema.ErrorType
	for i := range run.State().Turn(turn).Calls {
		var typ schema.ErrorType
		if e := run.State().Result(turn, i).Error; e != nil {
			typ = e.Type
		}
		types = append(types, typ)
	}
	return types
}

func modelError(kind model.Kind, after time.Duration) looptest.Step {
	return looptest.Fail(&model.Error{Kind: kind, RetryAfter: after, Message: "no"})
}
