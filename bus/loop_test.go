package bus_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

func TestJournal(t *testing.T) {
	t.Parallel()
	srv := bustest.Server(t)
	looptest.TestJournal(t, func(t *testing.T) loop.Journal { return bustest.Connect(t, srv) })
}

// mixed is a model that asks for calls of every fate in one turn, then answers.
type mixed struct{}

func (mixed) Generate(_ context.Context, req *model.Request) (*model.Response, error) {
	if req.Turn > 1 {
		return &model.Response{Text: "done", Finish: schema.FinishStop}, nil
	}
	calls := []schema.RawCall{
		{ID: "a", Name: "add", Args: `{"a":1,"b":2}`},
		{ID: "a", Name: "add", Args: `{"a":"one"}`},
		{ID: "", Name: "book", Args: `{"seat":"4C"}`},
		{ID: "d", Name: "fails", Args: ``},
		{ID: "e", Name: "panics", Args: `null`},
		{ID: "f", Name: "hangs", Args: `{}`},
		{ID: "g", Name: "invented", Args: `{}`},
		{ID: "h", Name: "add", Args: `{"a":3,"b":4}`},
	}
	return &model.Response{Calls: calls, Finish: schema.FinishCalls}, nil
}

func mixedTools(t *testing.T) *executor.Set {
	type sum struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	type seat struct {
		Seat string `json:"seat"`
	}
	type none struct{}
	set, err := executor.NewSet("test",
		executor.Func("add", "Add.", func(_ context.Context, in sum) (int, error) { return in.A + in.B, nil }, executor.Idempotent()),
		executor.Func("book", "Book.", func(_ context.Context, in seat) (string, error) { return "booked " + in.Seat, nil }),
		executor.Func("fails", "Fail.", func(context.Context, none) (string, error) { return "", fmt.Errorf("exit status 1") }),
		executor.Func("panics", "Panic.", func(context.Context, none) (string, error) { panic("boom") }),
		executor.Func("hangs", "Hang.", func(ctx context.Context, _ none) (string, error) { <-ctx.Done(); return "", ctx.Err() },
			executor.Timeout(100*time.Millisecond)),
	)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestD03EveryCallItsOwnOutcome runs a turn of mixed fates over a real bus: each call has its own outcome, in its
// slot, none of them ends the run, and the facts are as they must be.
func TestD03EveryCallItsOwnOutcome(t *testing.T) {
	t.Parallel()
	for _, parallel := range []bool{false, true} {
		t.Run(fmt.Sprintf("parallel %t", parallel), func(t *testing.T) {
			t.Parallel()
			srv := bustest.Server(t)
			bustest.Serve(t, bustest.Connect(t, srv), bus.Worker{Queue: "test", Slots: 8, Tools: mixedTools(t)})
			b := bustest.Connect(t, srv)
			tools := b.Select("*")
			if err := b.Select("add").Wait(t.Context(), 10*time.Second); err != nil {
				t.Fatal(err)
			}
			a, err := loop.New(loop.Config{
				Agent: schema.AgentSpec{ID: "mixed", Limits: schema.DefaultLimits(), Parallel: schema.Parallel{Calls: parallel}},
				Model: mixed{}, Bus: b, Registry: tools, Principal: somebody(),
			})
			if err != nil {
				t.Fatal(err)
			}
			run := schema.NewID()
			r, err := a.Start(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := r.Say(t.Context(), "go")
			if err != nil || answer.Text != "done" || answer.Reason != schema.ReasonDone {
				t.Errorf("answer %+v, %v", answer, err)
			}
			if err := r.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := []schema.ErrorType{"", schema.InvalidArguments, "", schema.ToolFailed, schema.Panic, schema.Timeout, schema.UnknownTool, ""}
			for i, typ := range want {
				res := r.State().Result(1, i)
				got := schema.ErrorType("")
				if res != nil && res.Error != nil {
					got = res.Error.Type
				}
				if res == nil || got != typ {
					t.Errorf("call %d: %+v, want %q", i, res, typ)
				}
			}
			facts, err := b.Facts(t.Context(), run, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range bustest.Check(facts) {
				t.Error(err)
			}
		})
	}
}
