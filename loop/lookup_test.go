package loop_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// capped is a model whose provider takes so many tools, and one of them not.
type capped struct {
	*looptest.Model
	most  int
	unfit []model.Unfit
}

func (c *capped) MaxTools() int { return c.most }

func (c *capped) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	resp, err := c.Model.Generate(ctx, req)
	if err == nil {
		resp.Unfit = c.unfit
	}
	return resp, err
}

// crowd is a rig with 9 tools of its own and 325 of servers, over a model that takes 128.
func crowd(steps ...looptest.Step) *rig {
	r := &rig{bus: looptest.NewBus(), model: looptest.NewModel(steps...), events: &looptest.Events{}}
	r.cfg = loop.Config{
		Agent: schema.AgentSpec{ID: "tester", Limits: schema.DefaultLimits()}, Principal: schema.Principal{ID: "local", Scopes: []string{"tool:*"}}, Model: &capped{Model: r.model, most: 128},
		Bus: r.bus, Registry: r.bus, Events: r.events.Add,
	}
	for i := range 325 {
		t := schema.Tool{Name: fmt.Sprintf("a_tool_%03d", i), Description: "Serves.", Source: "server", Queue: "mcp-server"}
		if i == 300 {
			t.Description = "Measures the weather of a city."
			t.Parameters = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`
		}
		r.bus.Tool(t, func(_ context.Context, c *schema.Call) (string, error) { return c.Tool + " " + string(c.Args), nil })
	}
	for i := range 9 {
		r.tool(fmt.Sprintf("own_%d", i), func(context.Context, *schema.Call) (string, error) { return "own", nil })
	}
	return r
}

func shownNames(req *model.Request) (names []string) {
	for _, t := range req.Tools {
		names = append(names, t.Name)
	}
	return names
}

func TestA18NeverMoreThanTheProviderTakes(t *testing.T) {
	t.Parallel()
	r := crowd(calls("own_3"), looptest.Text("done"))
	r.run(t)
	var first []string
	for i, req := range r.model.Requests() {
		names := shownNames(req)
		if len(names) != 128 {
			t.Errorf("request %d: %d tools", i, len(names))
		}
		for n := range 9 {
			if !slices.Contains(names, fmt.Sprintf("own_%d", n)) {
				t.Errorf("request %d: own_%d is crowded out", i, n)
			}
		}
		if !slices.Contains(names, schema.ToolFindTools) || !slices.Contains(names, schema.ToolCallTool) {
			t.Errorf("request %d: no lookup", i)
		}
		if i == 0 {
			first = names
		} else if diff := cmp.Diff(first, names); diff != "" {
			t.Errorf("request %d: another choice: %s", i, diff)
		}
	}
	said := r.events.Of(loop.EventModelResponse)[0].Notices
	if len(said) != 1 || !strings.Contains(said[0], "334 tools") || !strings.Contains(said[0], "128") || !strings.Contains(said[0], "a_tool_117") {
		t.Errorf("said %q", said)
	}
	if again := r.events.Of(loop.EventModelResponse)[1].Notices; len(again) > 0 {
		t.Errorf("said twice: %q", again)
	}
}

func TestA18FewerToolsNeedNoLookup(t *testing.T) {
	t.Parallel()
	r := newRig(looptest.Text("done"))
	r.cfg.Model = &capped{Model: r.model, most: 128}
	r.run(t)
	if names := shownNames(r.model.Requests()[0]); slices.Contains(names, schema.ToolFindTools) || len(names) != 7 {
		t.Errorf("shown %q", names)
	}
}

func TestA18OverflowIsReachedByLookup(t *testing.T) {
	t.Parallel()
	find := looptest.Calls(schema.RawCall{Name: schema.ToolFindTools, Args: `{"query":"weather city"}`}, schema.RawCall{Name: schema.ToolFindTools, Args: `{"query":"zzz"}`})
	ask := looptest.Calls(
		schema.RawCall{Name: schema.ToolCallTool, Args: `{"name":"a_tool_300","arguments":{"city":"Rome","n":1.10}}`},
		schema.RawCall{Name: schema.ToolCallTool, Args: `{"name":"A_Tool_300","arguments":{}}`},
		schema.RawCall{Name: schema.ToolCallTool, Args: `{"name":"nope"}`},
		schema.RawCall{Name: schema.ToolCallTool, Args: `{"name":"call_tool","arguments":{}}`},
		schema.RawCall{Name: schema.ToolCallTool, Args: `{"arguments":{}}`},
		schema.RawCall{Name: schema.ToolCallTool, Args: `oops`},
		schema.RawCall{Name: "a_tool_299"},
	)
	guard := &names{}
	r := crowd(find, ask, looptest.Text("done"))
	r.cfg.Guards = []loop.Guard{guard}
	_, run := r.run(t)
	read := texts(results(run))
	if !strings.Contains(read[0], `"name":"a_tool_300"`) || !strings.Contains(read[0], `"city"`) || !strings.Contains(read[1], "334 tools") {
		t.Errorf("found %q, %q", read[0], read[1])
	}
	want := []string{
		`a_tool_300 {"city":"Rome","n":1.10}`, "InvalidArguments", "UnknownTool", "InvalidArguments", "InvalidArguments", "InvalidArguments", "a_tool_299 {}",
	}
	for i, w := range want {
		if !strings.Contains(read[2+i], w) {
			t.Errorf("call %d: %q, want %q", i, read[2+i], w)
		}
	}
	// What decides, records and runs sees the tool itself.
	c := run.State().Turn(2).Calls[0]
	if c.Tool != "a_tool_300" || c.Queue != "mcp-server" || !strings.Contains(c.Raw, `"name":"a_tool_300"`) || len(c.Notes) == 0 {
		t.Errorf("recorded %+v", c)
	}
	if slices.Contains(guard.seen, schema.ToolCallTool) || !slices.Contains(guard.seen, "a_tool_300") {
		t.Errorf("a guard saw %q", guard.seen)
	}
}

// names is a guard that notes the tools it is asked about.
type names struct{ seen []string }

func (n *names) Decide(_ context.Context, c *schema.TurnCall) schema.Decision {
	n.seen = append(n.seen, c.Tool)
	return schema.Decision{}
}

func (n *names) Settle(context.Context, *schema.TurnCall, *schema.Result) (string, bool) {
	return "", false
}

func TestA19WhatIsLeftOutIsSaid(t *testing.T) {
	t.Parallel()
	r := newRig(calls("ok"), looptest.Text("done"))
	r.cfg.Model = &capped{Model: r.model, unfit: []model.Unfit{{Tool: "odd", Source: "store", Why: "its schema is no object"}}}
	r.run(t)
	said := r.events.Of(loop.EventModelResponse)
	if diff := cmp.Diff([]string{`tool "odd" of "store" is left out: its schema is no object`}, said[0].Notices); diff != "" {
		t.Error(diff)
	}
	if len(said[1].Notices) > 0 {
		t.Errorf("said twice: %q", said[1].Notices)
	}
}

// A16: the exact name wins over a repair, and two that fit are no answer.
func TestA16AmbiguousNamesAreNotGuessed(t *testing.T) {
	t.Parallel()
	r := newRig(calls("READ", "Read", "functions.read"), looptest.Text("done"))
	for _, name := range []string{"Read", "read"} {
		r.tool(name, func(_ context.Context, c *schema.Call) (string, error) { return "ran " + c.Tool, nil })
	}
	_, run := r.run(t)
	read := texts(results(run))
	if !strings.Contains(read[0], "UnknownTool") || !strings.Contains(read[0], "Read") || !strings.Contains(read[0], "read") {
		t.Errorf("READ: %q", read[0])
	}
	if read[1] != "ran Read" || !strings.Contains(read[2], "UnknownTool") {
		t.Errorf("got %q", read[1:])
	}
}

// A20: what the model sends is what the worker gets.
func TestA20TheServerGetsWhatTheModelSent(t *testing.T) {
	t.Parallel()
	r := newRig(looptest.Calls(schema.RawCall{Name: "open", Args: `{"id":"7","extra":{"x":1.50},"b":null}`}, schema.RawCall{Name: "open", Args: `{"id":"7"}`}), looptest.Text("done"))
	r.bus.Tool(schema.Tool{
		Name: "open", Description: "Open.",
		Parameters: `{"type":"object","properties":{"id":{"type":"string"},"a":{"type":"string"},"b":{"type":["string","null"]},"c":{"type":"integer"},"d":{"type":"boolean"}},"required":["id"]}`,
	}, func(_ context.Context, c *schema.Call) (string, error) { return string(c.Args), nil })
	_, run := r.run(t)
	if diff := cmp.Diff([]string{`{"id":"7","extra":{"x":1.50},"b":null}`, `{"id":"7"}`}, texts(results(run))); diff != "" {
		t.Error(diff)
	}
}
