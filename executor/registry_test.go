package executor_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

// offered is a registry that is not of the package, such as a bus's selection.
type offered struct {
	tools []schema.Tool
	err   error
}

func (o *offered) Tools(context.Context) ([]schema.Tool, error) { return o.tools, o.err }

func def(name string) schema.Tool { return schema.Tool{Name: name, Description: "Does " + name + "."} }

func on(queue string, t schema.Tool) schema.Tool { t.Queue = queue; return t }

func of(source string, t schema.Tool) schema.Tool { t.Source = source; return t }

func static(t *testing.T, origin string, tools ...schema.Tool) *executor.Definitions {
	t.Helper()
	d, err := executor.Static(origin, tools...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func names(t *testing.T, r executor.Registry) (list []string) {
	t.Helper()
	tools, err := r.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		list = append(list, tool.Name)
	}
	return list
}

// mentions reports what err does not say.
func mentions(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

func TestRegistries(t *testing.T) {
	t.Parallel()
	live := &offered{tools: []schema.Tool{on("web", def("fetch"))}}
	all, err := executor.Composite(static(t, "orders.go", def("status"), def("cancel")), executor.Empty(), live)
	if err != nil {
		t.Fatal(err)
	}
	sets, err := executor.Sets(newSet(t, says("b", "")), newSet(t, says("a", "")))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		from executor.Registry
		want []string
	}{
		{"empty, the default", executor.Empty(), nil},
		{"the zero value", &executor.Definitions{}, nil},
		{"static", static(t, "x", def("b"), def("a")), []string{"a", "b"}},
		{"composite", all, []string{"cancel", "fetch", "status"}},
		{"discovered", executor.Discovered("the bus", live), []string{"fetch"}},
		{"sets", sets, []string{"a", "b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, names(t, tt.from)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRegistryFollowsWhatItDiscovers(t *testing.T) {
	t.Parallel()
	live := &offered{}
	all, err := executor.Composite(static(t, "x", def("a")), executor.Discovered("the bus", live))
	if err != nil {
		t.Fatal(err)
	}
	before := names(t, all)
	live.tools = []schema.Tool{on("web", def("b"))}
	if diff := cmp.Diff([][]string{{"a"}, {"a", "b"}}, [][]string{before, names(t, all)}); diff != "" {
		t.Error(diff)
	}
	gone := errors.New("no connection")
	live.err = gone
	if _, err := all.Tools(t.Context()); !errors.Is(err, gone) || !strings.Contains(err.Error(), "the bus") {
		t.Errorf("got %v", err)
	}
}

func TestRegistryLookup(t *testing.T) {
	t.Parallel()
	all, err := executor.Composite(static(t, "x", def("read")), &offered{tools: []schema.Tool{of("github", def("issues"))}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"read": true, "issues": true, "Read": false, "rea": false, "functions.read": false, "": false} {
		got, found, err := all.Lookup(t.Context(), name)
		if err != nil || found != want || found && got.Name != name || !found && got.Name != "" {
			t.Errorf("%q: %+v, %t, %v", name, got, found, err)
		}
	}
	if got := all.Origin(t.Context(), "issues"); !strings.Contains(got, "github") {
		t.Errorf("origin %q", got)
	}
}

func TestDuplicateNames(t *testing.T) {
	t.Parallel()
	twice := &offered{tools: []schema.Tool{of("github", def("search")), of("gitlab", def("search"))}}
	tests := []struct {
		name  string
		parts func(t *testing.T) (executor.Registry, error)
		want  []string
	}{
		{"within one static", func(*testing.T) (executor.Registry, error) { return executor.Static("a.go", def("x"), def("x")) }, []string{`"x"`, "a.go"}},
		{"two statics", func(t *testing.T) (executor.Registry, error) {
			return executor.Composite(static(t, "a.go", def("x")), static(t, "b.go", def("x")))
		}, []string{`"x"`, "a.go", "b.go"}},
		{"set and static", func(t *testing.T) (executor.Registry, error) {
			s, err := executor.Sets(newSet(t, says("x", "")))
			if err != nil {
				t.Fatal(err)
			}
			return executor.Composite(s, static(t, "b.go", def("x")))
		}, []string{`"x"`, `queue "test"`, "b.go"}},
		{"two sets", func(t *testing.T) (executor.Registry, error) {
			return executor.Sets(newSet(t, says("x", "")), newSet(t, says("x", "")))
		}, []string{`"x"`, "a function of your own"}},
		{"static and discovered", func(t *testing.T) (executor.Registry, error) {
			return executor.Composite(static(t, "a.go", def("x")), executor.Discovered("the bus", &offered{tools: []schema.Tool{on("web", def("x"))}}))
		}, []string{`"x"`, "a.go", "the bus", `"web"`}},
		{"within one discovered", func(*testing.T) (executor.Registry, error) { return executor.Discovered("servers", twice), nil }, []string{`"search"`, `"github"`, `"gitlab"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := tt.parts(t)
			if err == nil {
				_, err = r.Tools(t.Context())
			}
			mentions(t, err, tt.want...)
		})
	}
}

func TestRegistryRefuses(t *testing.T) {
	t.Parallel()
	var none *executor.Definitions
	tests := []struct {
		name string
		make func() (executor.Registry, error)
		want []string
	}{
		{"blank name", func() (executor.Registry, error) { return executor.Static("a.go", schema.Tool{Description: "d"}) }, []string{"blank", "a.go"}},
		{"blank description", func() (executor.Registry, error) { return executor.Static("a.go", schema.Tool{Name: "x"}) }, []string{`"x"`, "description", "a.go"}},
		{"team tool", func() (executor.Registry, error) { return executor.Static("a.go", def("team_chat")) }, []string{"team_chat", "reserved", "a.go"}},
		{"sub-agent in capitals", func() (executor.Registry, error) { return executor.Static("a.go", def("Subagent_x")) }, []string{"Subagent_x", "reserved"}},
		{"discovered team tool", func() (executor.Registry, error) {
			return executor.Discovered("the bus", &offered{tools: []schema.Tool{on("web", def("team_x"))}}), nil
		}, []string{"team_x", "reserved", `"web"`}},
		{"discovered without a name", func() (executor.Registry, error) {
			return executor.Discovered("the bus", &offered{tools: []schema.Tool{on("web", schema.Tool{})}}), nil
		}, []string{"without a name", "the bus"}},
		{"nil", func() (executor.Registry, error) { return executor.Composite(nil) }, []string{"registry 1"}},
		{"nil pointer", func() (executor.Registry, error) { return executor.Composite(executor.Empty(), none) }, []string{"registry 2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := tt.make()
			if err == nil {
				_, err = r.Tools(t.Context())
			}
			mentions(t, err, tt.want...)
		})
	}
	if _, err := executor.Own("team", def("team_chat")); err != nil {
		t.Errorf("Jetcrew's own: %v", err)
	}
	agents := &offered{tools: []schema.Tool{on(schema.QueueAgents, def("subagent_clerk"))}}
	if got := names(t, executor.Discovered("the bus", agents)); len(got) != 1 {
		t.Errorf("agents: %v", got)
	}
}

func TestDescribed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ description, title, want string }{
		{"d", "t", "d"}, {" ", "t", "t"}, {"", "", "n"},
	} {
		if got := executor.Described(schema.Tool{Name: "n", Description: tt.description}, tt.title).Description; got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
	tools, err := executor.Discovered("x", &offered{tools: []schema.Tool{{Name: "bare"}}}).Tools(t.Context())
	if err != nil || tools[0].Description != "bare" {
		t.Errorf("%+v, %v", tools, err)
	}
}
