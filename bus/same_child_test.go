package bus_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// crowd is an agent that calls one child and one tool several times in one turn. What its memory then has is its answer.
type crowd struct {
	mu    sync.Mutex
	asked map[string]int // requests by agent and task
}

const crowded = 8 // calls of the child, and as many of the tool

func (c *crowd) Generate(_ context.Context, req *model.Request) (*model.Response, error) {
	task := ""
	var got []string
	for _, m := range req.Messages {
		switch m.Role {
		case schema.RoleUser:
			task = m.Text
		case schema.RoleTool:
			got = append(got, m.Text)
		}
	}
	c.mu.Lock()
	c.asked[req.Agent+" "+task]++
	c.mu.Unlock()
	if req.Agent == "child" || len(got) > 0 {
		return &model.Response{Text: strings.Join(append(got, task), " "), Finish: schema.FinishStop}, nil
	}
	r := &model.Response{Finish: schema.FinishCalls}
	for i := range crowded {
		r.Calls = append(r.Calls,
			schema.RawCall{ID: "same", Name: "child", Args: fmt.Sprintf(`{"task":"%s.%d"}`, task, i)},
			schema.RawCall{ID: "same", Name: "echo", Args: fmt.Sprintf(`{"i":"%s.%d"}`, task, i)})
	}
	return r, nil
}

func (*crowd) Tools(context.Context) ([]schema.Tool, error) {
	child := schema.AgentTool(schema.AgentSpec{ID: "child"})
	return []schema.Tool{child, {Name: "echo", Description: "Echoes.", Parameters: `{"type":"object"}`, Queue: "test", Idempotent: true}}, nil
}

// TestD34SameChildManyTimes: calls of one child and one tool in one turn, in many runs at once, end each with its own
// result in its own place, all of which the next request of the model has. Their wake-ups come nearly at once, and still
// no turn is asked for twice. It is for the race detector, too.
func TestD34SameChildManyTimes(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 16, Tools: toolbox{"echo": echo}})
	c := &crowd{asked: map[string]int{}}
	for range 2 {
		hb := connect(t, srv)
		hosted(t, hb, bus.Hosting{Slots: 16, Host: newHost(t, hb, c, c)})
	}
	runs := make([]string, 50)
	for i := range runs {
		runs[i] = start(t, b, "parent", fmt.Sprintf(`{"task":"t%d"}`, i))
	}
	for i, run := range runs {
		facts := waitClosed(t, b, run, time.Minute)
		var want strings.Builder
		for k := range crowded {
			fmt.Fprintf(&want, `t%d.%d {"i":"t%d.%d"} `, i, k, i, k)
		}
		if got := answerOf(t, facts, 1).Text; got != want.String()+fmt.Sprint("t", i) {
			t.Errorf("answer %q, want %q", got, want.String())
		}
		for _, err := range bustest.Check(facts) {
			t.Error(err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for who, n := range c.asked {
		if want := 1 + strings.Count(who, "parent"); n != want {
			t.Errorf("%s was asked %d times, want %d", who, n, want)
		}
	}
}
