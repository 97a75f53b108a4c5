package executor_test

import (
	"strings"
	"testing"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/executor/toolkit"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/schema"
)

// TestSeedStructure is section 5.3 of the seed tools-and-registry: a call that does not look like an executable one is
// refused before it reaches its tool, for its structure and not for who asks. What the seed wires by name the tools of
// this project say in their schemas. The other parts of section 5 are loop.TestSeedToolCalls.
func TestSeedStructure(t *testing.T) {
	t.Parallel()
	tests := []struct {
		section    string
		name, args string
		want       schema.ErrorType // empty: it is executed
	}{
		{"5.3 the tool name must not be empty", " ", `{}`, schema.UnknownTool},
		{"5.3 arguments must be a JSON object: a list", "read_file", `["a"]`, schema.InvalidArguments},
		{"5.3 arguments must be a JSON object: a text", "read_file", `"a"`, schema.InvalidArguments},
		{"5.3 arguments must be a JSON object: no JSON", "read_file", `path=a`, schema.InvalidArguments},
		{"5.3 blank arguments are none", "read_file", ` `, schema.InvalidArguments},
		{"5.3 read_file.path is there", "read_file", `{}`, schema.InvalidArguments},
		{"5.3 read_file.path is not empty", "read_file", `{"path":""}`, schema.InvalidArguments},
		{"5.3 apply_patch.patch is there", "apply_patch", `{}`, schema.InvalidArguments},
		{"5.3 apply_patch.patch is not empty", "apply_patch", `{"patch":""}`, schema.InvalidArguments},
		{"5.3 bash exec, the default, takes a command", "bash", `{}`, schema.InvalidArguments},
		{"5.3 bash exec takes a command", "bash", `{"action":"exec","command":" "}`, schema.InvalidArguments},
		{"5.3 bash start takes a command", "bash", `{"action":"start"}`, schema.InvalidArguments},
		{"5.3 bash status takes a processId", "bash", `{"action":"status"}`, schema.InvalidArguments},
		{"5.3 bash logs takes a processId", "bash", `{"action":"logs","processId":" "}`, schema.InvalidArguments},
		{"5.3 bash write takes a processId", "bash", `{"action":"write","command":"x"}`, schema.InvalidArguments},
		{"5.3 bash stop takes a processId", "bash", `{"action":"stop"}`, schema.InvalidArguments},
		{"5.3 actions are case-sensitive", "bash", `{"action":"EXEC","command":"true"}`, schema.InvalidArguments},
		{"5.3 a whole call is executed", "bash", `{"command":"echo fine"}`, ""},
		{"5.3 what is executable may fail all the same", "read_file", `{"path":"not-there"}`, schema.ToolFailed},
	}
	for _, tt := range tests {
		t.Run(tt.section, func(t *testing.T) {
			t.Parallel()
			w := executor.Wiring{Toolkits: toolkit.Names(), Table: toolkit.Table(t.TempDir())}
			wired, err := w.Build(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			bus, heard := looptest.NewBus(), 0
			l := local(t, bus, wired.Set)
			defer l.Wait()
			dispatcher, err := executor.Route(bus, l)
			if err != nil {
				t.Fatal(err)
			}
			counted := counting{dispatcher, &heard}
			llm := looptest.NewModel(looptest.Calls(schema.RawCall{ID: "a", Name: tt.name, Args: tt.args}), looptest.Text("done"))
			agent, err := loop.New(loop.Config{
				Agent: schema.AgentSpec{ID: "tester"}, Principal: schema.Principal{ID: "local", Scopes: []string{"tool:*"}},
				Model: llm, Journal: bus, Dispatcher: counted, Registry: wired,
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := agent.Run(t.Context(), "go"); err != nil {
				t.Fatal(err)
			}
			msgs := llm.Requests()[1].Messages
			text := msgs[len(msgs)-1].Text
			if tt.want == "" && strings.HasPrefix(text, "TOOL_ERROR") || tt.want != "" && !strings.HasPrefix(text, `TOOL_ERROR: {"errorType":"`+string(tt.want)+`"`) {
				t.Errorf("the model reads %s, want %q", text, tt.want)
			}
			if executed := tt.want == "" || tt.want == schema.ToolFailed; (heard == 1) != executed {
				t.Errorf("%d calls reached the executor", heard)
			}
		})
	}
}

// counting counts the calls that are dispatched.
type counting struct {
	loop.Dispatcher
	calls *int
}

func (c counting) Start(calls ...schema.Dispatch) {
	*c.calls += len(calls)
	c.Dispatcher.Start(calls...)
}
