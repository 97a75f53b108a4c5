package executor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/executor/toolkit"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/schema"
)

// server is a service with tools.
type server struct {
	name  string
	tools []executor.Tool
	err   error
}

func (s server) Name() string { return s.name }

func (s server) Tools(context.Context) ([]executor.Tool, error) { return s.tools, s.err }

func bare(name, out string) executor.Tool {
	t := says(name, out)
	t.Description = ""
	return t
}

// github is a server whose tools describe themselves poorly.
func github() server {
	return server{name: "github", tools: []executor.Tool{says("issues", "7 issues"), bare("pulls", "no pulls")}}
}

func weather() []executor.Tool {
	return []executor.Tool{says("query_weather", "sunny"), says("drop_tables", "dropped")}
}

// gateway answers every call with its name.
func gateway(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
	return c.Done("gateway ran " + c.Tool), nil
}

// run has a model make one call of each name over what is wired, and returns what the model saw and what it read.
func run(t *testing.T, w executor.Wiring, calls ...string) (seen, read []string) {
	t.Helper()
	wired, err := w.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]schema.RawCall, len(calls))
	for i, name := range calls {
		raw[i] = schema.RawCall{Name: name}
	}
	bus := looptest.NewBus()
	llm := looptest.NewModel(looptest.Calls(raw...), looptest.Text("done"))
	cfg := loop.Config{Agent: schema.AgentSpec{ID: "tester"}, Principal: schema.Principal{ID: "local", Scopes: []string{"tool:*"}}, Model: llm, Bus: bus, Registry: wired}
	if wired.Set != nil {
		l := local(t, bus, wired.Set)
		defer l.Wait()
		if cfg.Dispatcher, err = executor.Route(bus, l); err != nil {
			t.Fatal(err)
		}
	}
	agent, err := loop.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Run(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	for _, tool := range llm.Requests()[0].Tools {
		seen = append(seen, tool.Name)
	}
	for _, m := range llm.Requests()[1].Messages {
		if m.Role == schema.RoleTool {
			read = append(read, m.Text)
		}
	}
	return seen, read
}

// TestSeedWirings is what the seed on tools and registries says of how the parts are put together.
func TestSeedWirings(t *testing.T) {
	t.Parallel()
	deny := func(next executor.Execute) executor.Execute {
		return func(ctx context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
			if c.Tool == "drop_tables" {
				return c.Fail(schema.Denied, "not approved"), nil
			}
			return next(ctx, c)
		}
	}
	files := executor.Wiring{Names: []string{"query_weather", "list_files"}, Tools: weather(), Toolkits: []string{"files"}, Table: toolkit.Table(t.TempDir())}
	withGitHub := files
	withGitHub.Services = []executor.Service{github()}
	tests := []struct {
		section string
		wiring  executor.Wiring
		calls   []string
		seen    []string
		read    []string // the beginning of each text
	}{
		{"4.1 no registry: the model sees no tools", executor.Wiring{}, []string{"query_weather"}, nil, []string{`TOOL_ERROR: {"errorType":"UnknownTool"`}},
		{"4.2 functions and servers are one surface", withGitHub, []string{"issues", "query_weather"}, []string{"issues", "list_files", "pulls", "query_weather"}, []string{"7 issues", "sunny"}},
		{"4.3 the default executor runs exactly the names", files, []string{"query_weather", "drop_tables", "write_file"}, []string{"list_files", "query_weather"}, []string{"sunny", "TOOL_ERROR", "TOOL_ERROR"}},
		{"9.1 names and a server", executor.Wiring{Names: []string{"query_weather"}, Tools: weather(), Services: []executor.Service{github()}}, []string{"query_weather", "pulls"}, []string{"issues", "pulls", "query_weather"}, []string{"sunny", "no pulls"}},
		{"9.2 a guarded executor", executor.Wiring{Tools: weather(), Wrappers: []executor.Wrapper{deny}}, []string{"query_weather", "drop_tables"}, []string{"drop_tables", "query_weather"}, []string{"sunny", `TOOL_ERROR: {"errorType":"Denied"`}},
		{"9.3 own schemas and a gateway", executor.Wiring{Schemas: []schema.Tool{def("remote_search")}, Executor: gateway}, []string{"remote_search"}, []string{"remote_search"}, []string{"gateway ran remote_search"}},
	}
	for _, tt := range tests {
		t.Run(tt.section, func(t *testing.T) {
			t.Parallel()
			seen, read := run(t, tt.wiring, tt.calls...)
			if diff := cmp.Diff(tt.seen, seen); diff != "" {
				t.Errorf("the model sees: %s", diff)
			}
			for i, want := range tt.read {
				if i >= len(read) || !strings.HasPrefix(read[i], want) {
					t.Errorf("the model reads %q, want %q", read, tt.read)
				}
			}
		})
	}
}

// TestSeedAllowList is 10.3 of the same seed: the list of the default executor constrains only itself.
func TestSeedAllowList(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{false, true} {
		w := executor.Wiring{Names: []string{"query_weather"}, Tools: weather()}
		if own {
			w.Executor = gateway
		}
		wired, err := w.Build(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r, _ := wired.Set.Execute(t.Context(), call("drop_tables", ""))
		if own != r.OK {
			t.Errorf("executor of one's own %t: %+v", own, r)
		}
	}
}

func TestSourcesOfServices(t *testing.T) {
	t.Parallel()
	wired, err := executor.Wiring{Services: []executor.Service{github()}}.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pulls, found, err := wired.Lookup(t.Context(), "pulls")
	if err != nil || !found || pulls.Source != "github" || pulls.Description != "pulls" || pulls.Queue != executor.QueueLocal {
		t.Errorf("%+v, %t, %v", pulls, found, err)
	}
}

func TestWiringRefuses(t *testing.T) {
	t.Parallel()
	down := errors.New("connection refused")
	dir := t.TempDir()
	tests := []struct {
		name   string
		wiring executor.Wiring
		want   []string
	}{
		{"unknown toolkit", executor.Wiring{Toolkits: []string{"browser"}, Table: toolkit.Table(dir)}, []string{`"browser"`, "unknown", `"files"`, `"shell"`}},
		{"unavailable toolkit", executor.Wiring{Toolkits: []string{"files"}, Table: toolkit.Table(dir + "/missing")}, []string{`"files"`, "not available", "missing"}},
		{"names that no tool has", executor.Wiring{Names: []string{"query_wether", "x"}, Tools: weather()}, []string{`"query_wether"`, "query_weather", `"x"`}},
		{"definitions without an executor", executor.Wiring{Schemas: []schema.Tool{def("a"), def("b")}}, []string{`"a"`, `"b"`, "Executor"}},
		{"an executor without definitions", executor.Wiring{Executor: gateway}, []string{"Executor", "Schemas"}},
		{"a server that is away", executor.Wiring{Services: []executor.Service{server{name: "github", err: down}}}, []string{`"github"`, "connection refused"}},
		{"function and server", executor.Wiring{Tools: []executor.Tool{says("issues", "")}, Services: []executor.Service{github()}}, []string{`"issues"`, "a function of your own", `service "github"`}},
		{"function and toolkit", executor.Wiring{Tools: []executor.Tool{says("read_file", "")}, Toolkits: []string{"files"}, Table: toolkit.Table(dir)}, []string{`"read_file"`, "a function of your own", `toolkit "files"`}},
		{"two servers", executor.Wiring{Services: []executor.Service{github(), server{"forge", []executor.Tool{says("issues", "")}, nil}}}, []string{`"issues"`, `"github"`, `"forge"`}},
		{"function and definition", executor.Wiring{Tools: []executor.Tool{says("a", "")}, Schemas: []schema.Tool{def("a")}, Executor: gateway}, []string{`"a"`, "a function of your own", "a definition of your own"}},
		{"reserved", executor.Wiring{Tools: []executor.Tool{says("team_send_message", "")}}, []string{"team_send_message", "reserved"}},
		{"a queue that cannot be", executor.Wiring{Tools: weather(), Queue: "None!"}, []string{"None!"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := tt.wiring.Build(t.Context())
			mentions(t, err, tt.want...)
		})
	}
}

// TestWiringFindsLateDuplicates is about what is known only when the model is asked.
func TestWiringFindsLateDuplicates(t *testing.T) {
	t.Parallel()
	live := &offered{tools: []schema.Tool{on("web", def("query_weather"))}}
	wired, err := executor.Wiring{Tools: weather(), Discovered: []executor.Registry{executor.Discovered("the bus", live)}}.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = wired.Tools(t.Context())
	mentions(t, err, `"query_weather"`, "a function of your own", "the bus", `"web"`)
}

// TestCustomExecutor is about what surrounds an executor of one's own.
func TestCustomExecutor(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	boom := errors.New("boom")
	inner := quiet(t, fails("fails", boom))
	exec := func(ctx context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
		mu.Lock()
		got = append(got, c.Tool)
		mu.Unlock()
		switch c.Tool {
		case "panics":
			panic("boom")
		case "fails":
			return inner.Execute(ctx, c)
		case "hangs":
			<-ctx.Done()
			return c.Done("late"), nil
		}
		return c.Done("ran " + c.Tool), nil
	}
	strict := def("strict")
	strict.Parameters = `{"type":"object","required":["id"]}`
	hanging := def("hangs")
	hanging.TimeoutMS = 20
	set, err := executor.Config{Queue: "test", Grace: 1}.Custom(exec, strict, def("panics"), def("fails"), hanging)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tool string
		want schema.ErrorType
	}{{"strict", schema.InvalidArguments}, {"panics", schema.Panic}, {"fails", schema.ToolFailed}, {"hangs", schema.Timeout}, {"anything", ""}} {
		o := execute(t, set, call(tt.tool, "{}"))
		if tt.tool == "hangs" && o.OK { // it came back within the grace
			continue
		}
		if o.Type != tt.want {
			t.Errorf("%s: %+v", tt.tool, o)
		}
	}
	mu.Lock()
	ran := slices.Clone(got)
	mu.Unlock()
	if slices.Contains(ran, "strict") {
		t.Error("a call that its definition refuses was run")
	}
	if _, err := set.Call(t.Context(), "fails", ""); !errors.Is(err, boom) {
		t.Errorf("the tool's own error: %v", err)
	}
	if _, err := (executor.Config{Queue: "test"}).Custom(nil, strict); err == nil {
		t.Error("no executor: no error")
	}
}
