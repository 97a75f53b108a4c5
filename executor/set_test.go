package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

type city struct {
	Name  string      `json:"name" jsonschema:"description=Name of the city"`
	Days  int32       `json:"days,omitempty" jsonschema:"minimum=0"`
	Exact json.Number `json:"exact,omitempty"`
}

func text(name string, fn func(context.Context) (string, error), opts ...executor.Option) executor.Tool {
	return executor.Func(name, "Does "+name+".", func(ctx context.Context, _ struct{}) (string, error) { return fn(ctx) }, opts...)
}

func says(name, out string) executor.Tool {
	return text(name, func(context.Context) (string, error) { return out, nil })
}

func fails(name string, err error, opts ...executor.Option) executor.Tool {
	return text(name, func(context.Context) (string, error) { return "", err }, opts...)
}

func newSet(t testing.TB, tools ...executor.Tool) *executor.Set {
	t.Helper()
	set, err := executor.NewSet("test", tools...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func call(tool, args string) *schema.Call {
	return &schema.Call{Run: "r1", Turn: 2, Index: 3, Label: "c3", Tool: tool, Args: schema.JSONText(args)}
}

// outcome is what a test compares of a result.
type outcome struct {
	OK     bool
	Type   schema.ErrorType
	Output string
}

func outcomeOf(r schema.Result) outcome {
	if r.Error == nil {
		return outcome{OK: r.OK, Output: r.Output}
	}
	return outcome{OK: r.OK, Type: r.Error.Type, Output: r.Error.Message}
}

func execute(t testing.TB, set *executor.Set, c *schema.Call) outcome {
	t.Helper()
	r, pending := set.Execute(t.Context(), c)
	if pending != nil {
		t.Fatalf("pending: %+v", pending)
	}
	if r.Run != c.Run || r.Turn != c.Turn || r.Index != c.Index {
		t.Errorf("result of %s/%d.%d for call %s", r.Run, r.Turn, r.Index, c)
	}
	return outcomeOf(r)
}

func TestSetTools(t *testing.T) {
	t.Parallel()
	set := newSet(t, says("b", ""), executor.Func("a", "Forecast.",
		func(context.Context, city) (string, error) { return "", nil },
		executor.Idempotent(), executor.Effect(schema.EffectRead), executor.Timeout(1500*time.Millisecond)))
	empty := schema.JSONText(`{"properties":{},"additionalProperties":false,"type":"object"}`)
	params := schema.JSONText(`{"properties":{"name":{"type":"string","description":"Name of the city"},"days":{"type":"integer","minimum":0},"exact":{"type":"number"}},"additionalProperties":false,"type":"object","required":["name"]}`)
	want := []schema.Tool{
		{Name: "a", Description: "Forecast.", Parameters: params, Idempotent: true, Effect: schema.EffectRead, TimeoutMS: 1500, Queue: "test", Digest: schema.Digest([]byte(params))},
		{Name: "b", Description: "Does b.", Parameters: empty, Queue: "test", Digest: schema.Digest([]byte(empty))},
	}
	if diff := cmp.Diff(want, set.Tools()); diff != "" {
		t.Error(diff)
	}
}

func TestNewSetRefuses(t *testing.T) {
	t.Parallel()
	type tree struct {
		Below []tree `json:"below"`
	}
	recursive := executor.Func("tree", "Grows.", func(context.Context, tree) (string, error) { return "", nil })
	channel := executor.Func("chan", "Waits.", func(context.Context, struct{ C chan int }) (string, error) { return "", nil })
	list := executor.Func("list", "Lists.", func(context.Context, []string) (string, error) { return "", nil })
	tests := []struct {
		name, queue string
		tools       []executor.Tool
		want        []string
	}{
		{"no queue", "", nil, []string{"queue"}},
		{"two of one name", "test", []executor.Tool{says("a", ""), says("b", ""), executor.Func("a", "Another.", func(context.Context, struct{}) (int, error) { return 0, nil })}, []string{"tool 3", `"a"`, "Does a.", "Another."}},
		{"blank name", "test", []executor.Tool{says(" ", "")}, []string{"tool 1", "blank"}},
		{"no code", "test", []executor.Tool{{Tool: schema.Tool{Name: "a", Description: "A."}}}, []string{`"a"`, "nothing to run"}},
		{"negative timeout", "test", []executor.Tool{text("a", nil, executor.Timeout(-time.Second))}, []string{"-1000 ms"}},
		{"recursive arguments", "test", []executor.Tool{recursive}, []string{`"tree"`, "contains itself"}},
		{"impossible arguments", "test", []executor.Tool{channel}, []string{`"chan"`, "chan int"}},
		{"arguments that are no object", "test", []executor.Tool{list}, []string{`"list"`, "object"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := executor.NewSet(tt.queue, tt.tools...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not name %q", err, want)
				}
			}
		})
	}
}

func TestExecuteArguments(t *testing.T) {
	t.Parallel()
	set := newSet(t,
		executor.Func("echo", "Echoes.", func(_ context.Context, in city) (city, error) { return in, nil }),
		says("ping", "pong"))
	tests := []struct {
		name, tool, args string
		ok               bool
		want             []string
		never            string
	}{
		{"a value keeps its digits", "echo", `{"name":"<Köln>","exact":1.10}`, true, []string{`{"name":"<Köln>","exact":1.10}`}, ""},
		{"A01 empty arguments", "ping", "", true, []string{"pong"}, ""},
		{"A01 blank arguments", "ping", " \n", true, []string{"pong"}, ""},
		{"A02 null", "ping", "null", true, []string{"pong"}, ""},
		{"A01 missing property", "echo", "", false, []string{"name"}, "JSON"},
		{"A03 array", "echo", `["a"]`, false, []string{"object", "array"}, "Go"},
		{"A24 wrong type", "echo", `{"name":5}`, false, []string{"name", "string", "number"}, "Go struct"},
		{"A24 wrong key", "echo", `{"nam":"a"}`, false, []string{"nam", "name"}, "Go struct"},
		{"A24 too large for the type", "echo", `{"name":"a","days":4000000000}`, false, []string{`"days"`, "an integer of at most 32 bits", "4000000000"}, "int32"},
		{"A24 integer written as a float", "echo", `{"name":"a","days":3.0}`, false, []string{`"days"`, "an integer", "3.0"}, "int32"},
		{"A24 raw newline", "echo", "{\"name\":\"a\nb\"}", false, []string{"byte"}, "Go"},
		{"duplicate key", "echo", `{"name":"a","name":"b"}`, false, []string{"name"}, "Go"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := execute(t, set, call(tt.tool, tt.args))
			if got.OK != tt.ok || !tt.ok && got.Type != schema.InvalidArguments {
				t.Errorf("got %+v", got)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.Output, want) {
					t.Errorf("output %q lacks %q", got.Output, want)
				}
			}
			if tt.never != "" && strings.Contains(got.Output, tt.never) {
				t.Errorf("output %q has %q", got.Output, tt.never)
			}
		})
	}
}

func TestA15UnknownTool(t *testing.T) {
	t.Parallel()
	set := newSet(t, says("read_file", ""), says("write_file", ""))
	for _, name := range []string{"generic_command", "reed file!", "", strings.Repeat("x", 5000), "a\x00b"} {
		got := execute(t, set, call(name, "{}"))
		if got.Type != schema.UnknownTool || len(got.Output) > 2000 || !strings.Contains(got.Output, "read_file") {
			t.Errorf("tool %.20q: %+v", name, got)
		}
	}
}

func TestDynamic(t *testing.T) {
	t.Parallel()
	def := schema.Tool{Name: "sum", Description: "Adds.", Parameters: `{"type":"object","properties":{"a":{"type":"number"}}}`}
	tool, err := executor.Dynamic(def, func(_ context.Context, args map[string]any) (any, error) {
		if _, ok := args["a"].(json.Number); !ok {
			return nil, errors.New("not a json.Number")
		}
		return map[string]any{"a": args["a"], "b": "<&>"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := outcome{OK: true, Output: `{"a":1.50,"b":"<&>"}`}
	if got := execute(t, newSet(t, tool), call("sum", `{"a":1.50}`)); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, def := range []schema.Tool{
		{Name: " ", Description: "d"},
		{Name: "a", Description: " "},
		{Name: "a", Description: "d", Parameters: `{"type":"strin`},
		{Name: "a", Description: "d", Parameters: `{"type":"string"}`},
	} {
		if _, err := executor.Dynamic(def, func(context.Context, map[string]any) (any, error) { return nil, nil }); err == nil {
			t.Errorf("%+v: no error", def)
		}
	}
	if _, err := executor.Dynamic(def, nil); err == nil {
		t.Error("no handler: no error")
	}
}

func TestWrappers(t *testing.T) {
	t.Parallel()
	var order []string
	note := func(name string) executor.Wrapper {
		return func(next executor.Execute) executor.Execute {
			return func(ctx context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
				order = append(order, name+" "+string(c.Args))
				return next(ctx, c)
			}
		}
	}
	set := quiet(t, says("a", "out"))
	wrapped := set.With(note("third")).With(note("first"), note("second"))
	if got := execute(t, wrapped, call("a", " { } ")); !got.OK {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"first {}", "second {}", "third {}"}, order); diff != "" {
		t.Error(diff)
	}
	panics := set.With(func(executor.Execute) executor.Execute {
		return func(context.Context, *schema.Call) (schema.Result, *schema.Pending) { panic("wrapper") }
	})
	if got := execute(t, panics, call("a", "")); got.Type != schema.Panic {
		t.Errorf("got %+v", got)
	}
}

func TestKeyAndCall(t *testing.T) {
	t.Parallel()
	set := newSet(t, text("a", func(ctx context.Context) (string, error) {
		return executor.Key(ctx) + " " + executor.CallOf(ctx).Label, nil
	}))
	if got := execute(t, set, call("a", "")); got.Output != "r1/2.3 c3" {
		t.Errorf("got %+v", got)
	}
	if executor.Key(t.Context()) != "" || executor.CallOf(t.Context()) != nil {
		t.Error("a call outside a tool")
	}
}

func TestCall(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	set := quiet(t, says("ok", "fine"), fails("err", boom), fails("transient", executor.Transient(boom, time.Second), executor.Idempotent()),
		text("panic", func(context.Context) (string, error) { panic(boom) }))
	if out, err := set.Call(t.Context(), "ok", ""); out != "fine" || err != nil {
		t.Errorf("got %q, %v", out, err)
	}
	for _, name := range []string{"err", "transient", "panic"} {
		_, err := set.Call(t.Context(), name, "{}")
		if !errors.Is(err, boom) {
			t.Errorf("%s: %v does not wrap the tool's error", name, err)
		}
		var p *executor.PanicError
		if errors.As(err, &p) != (name == "panic") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]schema.ErrorType{"nope": schema.UnknownTool, "ok": schema.InvalidArguments, "err": schema.ToolFailed} {
		args := schema.JSONText("{}")
		if name == "ok" {
			args = `{"x":1}`
		}
		_, err := set.Call(t.Context(), name, args)
		var e *schema.Error
		if !errors.As(err, &e) || e.Type != want || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
