package bus_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/executor/toolkit"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// curious is a model that writes much, has much printed, and reads what it did not get where the line in its place says.
type curious struct{}

func (curious) Generate(_ context.Context, req *model.Request) (*model.Response, error) {
	last := req.Messages[len(req.Messages)-1].Text
	var calls []schema.RawCall
	switch req.Turn {
	case 1:
		calls = append(calls,
			schema.RawCall{Name: "write_file", Args: `{"path":"large.txt","content":"` + strings.Repeat("x", 300<<10) + `"}`},
			schema.RawCall{Name: "bash", Args: `{"command":"seq 1000000"}`})
	case 2:
		_, hint, _ := strings.Cut(last, "left out here; read_output ")
		args, _, _ := strings.Cut(hint, " reads them")
		calls = append(calls, schema.RawCall{Name: "read_output", Args: args})
	default:
		return &model.Response{Text: last, Finish: schema.FinishStop}, nil
	}
	return &model.Response{Calls: calls, Finish: schema.FinishCalls}, nil
}

// TestC07ModelReadsTheRest: from the command to the middle of its output, over a real bus, with arguments that are too
// large for a message; the facts are as they must be.
func TestC07ModelReadsTheRest(t *testing.T) {
	t.Parallel()
	srv := bustest.Server(t)
	dir := t.TempDir()
	var kit []executor.Tool
	for _, name := range toolkit.Names() {
		tools, err := toolkit.Named(name, dir)
		if err != nil {
			t.Fatal(err)
		}
		kit = append(kit, tools...)
	}
	set, err := executor.NewSet("test", kit...)
	if err != nil {
		t.Fatal(err)
	}
	bustest.Serve(t, bustest.Connect(t, srv), bus.Worker{Queue: "test", Slots: 2, Tools: set})
	b := bustest.Connect(t, srv)
	if err := b.Select("bash").Wait(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	agent, err := loop.New(loop.Config{
		Agent: schema.AgentSpec{ID: "tester", Limits: schema.DefaultLimits()}, Bus: b, Registry: b.Select("bash", "write_file"), Model: curious{}, Principal: somebody(),
	})
	if err != nil {
		t.Fatal(err)
	}
	run, err := agent.Start(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := run.Say(t.Context(), "count")
	if err != nil || !strings.Contains(answer.Text, "of 6888896; go on with offset") || !strings.Contains(answer.Text, "\n8000\n8001\n") {
		t.Errorf("%.200q, %v", answer.Text, err)
	}
	if written, err := os.ReadFile(filepath.Join(dir, "large.txt")); err != nil || len(written) != 300<<10 {
		t.Errorf("%d bytes are written, %v", len(written), err)
	}
	if err := run.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	facts, err := b.Facts(t.Context(), run.ID(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range bustest.Check(facts) {
		t.Error(err)
	}
	again := memory.New()
	for _, f := range facts {
		if err := again.Apply(f); err != nil {
			t.Error(err)
		}
	}
	if got, want := again.Messages(), run.Messages(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Error("the memory that is read is not the one that was written")
	}
}
