package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// The bounds of what find_tools answers.
const (
	maxFound     = 10      // definitions
	maxFoundText = 4 << 10 // bytes of one definition; of a longer one the parameters are left out
)

// findTools finds the tools of which there are more than the provider takes. Like read_output it is executed here.
var findTools = schema.Tool{
	Name: schema.ToolFindTools,
	Description: "Finds further tools, of which there are more than can be listed here. Answers with the definitions that fit best; " +
		schema.ToolCallTool + " calls them.",
	Parameters: `{"type":"object","properties":{"query":{"type":"string","minLength":1,"description":"What the tool shall do, in a few words, or a part of its name"}},` +
		`"required":["query"],"additionalProperties":false}`,
	Idempotent: true, Effect: schema.EffectRead, TimeoutMS: partPatience, Queue: schema.QueueNone,
}.WithDigest()

// callTool stands for a call of any tool. It is never executed: the call that it holds is decided in its place.
var callTool = schema.Tool{
	Name:        schema.ToolCallTool,
	Description: "Calls a tool that " + schema.ToolFindTools + " has found.",
	Parameters: `{"type":"object","properties":{"name":{"type":"string","minLength":1,"description":"Name of the tool"},` +
		`"arguments":{"type":"object","description":"Its arguments, as its parameters say"}},"required":["name"],"additionalProperties":false}`,
	Queue: schema.QueueNone,
}.WithDigest()

// withLookup offers find_tools and call_tool beside tools of which the provider does not take all, unless one of them
// has such a name.
func (x *exchange) withLookup(tools []schema.Tool) []schema.Tool {
	limit := x.maxTools()
	if limit == 0 || len(tools) <= limit || named(findTools.Name, tools) != nil || named(callTool.Name, tools) != nil {
		return tools
	}
	return append(tools[:len(tools):len(tools)], findTools, callTool)
}

// maxTools returns how many tools the model's provider takes; 0: any number.
func (x *exchange) maxTools() int {
	if m, ok := x.agent.cfg.Model.(interface{ MaxTools() int }); ok {
		return m.MaxTools()
	}
	return 0
}

// shown returns the tools that go to the model: all of them, or as many as its provider takes, the loop's own first.
func (x *exchange) shown(tools []schema.Tool) []schema.Tool {
	limit := x.maxTools()
	if limit == 0 || len(tools) <= limit {
		return tools
	}
	var own, rest []schema.Tool
	for _, t := range tools {
		if t.Queue == schema.QueueNone {
			own = append(own, t)
		} else {
			rest = append(rest, t)
		}
	}
	chosen, over := model.Choose(rest, max(1, limit-len(own)))
	x.notice(fmt.Sprintf("%d tools are more than the %d that the model's provider takes: %d are reached through %s only, the first of them %s",
		len(rest), limit, len(over), findTools.Name, over[0].Name))
	return append(chosen, own...)
}

// notice says once in an exchange what the model was not given.
func (x *exchange) notice(text string) {
	if slices.Contains(x.notices, text) {
		return
	}
	x.notices = append(x.notices, text)
	x.agent.cfg.Logger.Warn("not all tools go to the model", "run", x.id, "why", text)
}

// noticeUnfit says which tools the provider cannot be given.
func (x *exchange) noticeUnfit(unfit []model.Unfit) {
	for _, u := range unfit {
		from := ""
		if u.Source != "" {
			from = fmt.Sprintf(" of %q", schema.Cut(u.Source, 80))
		}
		x.notice(fmt.Sprintf("tool %q%s is left out: %s", schema.Cut(u.Tool, 80), from, schema.Cut(u.Why, 512)))
	}
}

// newNotices returns those that no event has told yet.
func (x *exchange) newNotices() []string {
	fresh := x.notices[x.told:]
	x.told = len(x.notices)
	return fresh
}

// meant returns the tool that a call means, be it through call_tool: whatever decides about the call then sees the tool
// itself.
func (x *exchange) meant(c *schema.TurnCall, tools []schema.Tool) (*schema.Tool, *schema.Error) {
	tool, err := find(c, tools)
	if err != nil || tool.Name != callTool.Name || tool.Queue != schema.QueueNone || c.Decision.Action == schema.ActionInvalid {
		return tool, err
	}
	if err := x.agent.validator.Check(tool, c.Args); err != nil {
		return nil, err
	}
	var in struct {
		Name      string
		Arguments json.RawMessage
	}
	if json.Unmarshal([]byte(c.Args), &in) != nil || in.Name == callTool.Name {
		return nil, wrong("%s calls another tool by its name", callTool.Name)
	}
	args, notes, err := schema.Canonical(string(in.Arguments))
	if err != nil {
		return nil, err
	}
	c.Raw, c.Tool, c.Args = cmp.Or(c.Raw, string(c.Args)), in.Name, args
	c.Notes = append(append(c.Notes, "called through "+callTool.Name), notes...)
	return find(c, tools)
}

// findMore executes a call of find_tools.
func (x *exchange) findMore(ctx context.Context, call *schema.Call) (string, error) {
	var in struct{ Query string }
	if err := json.Unmarshal([]byte(call.Args), &in); err != nil {
		return "", wrong("query is a text")
	}
	var tools []schema.Tool
	var err error
	if r := x.agent.cfg.Registry; r != nil {
		tools, err = r.Tools(ctx)
	}
	if err == nil {
		tools, err = x.withSubagents(tools)
	}
	if err != nil {
		return "", err
	}
	found := search(tools, in.Query)
	if len(found) == 0 {
		return fmt.Sprintf("None of %d tools fits %q. Try other words.", len(tools), schema.Cut(in.Query, 80)), nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d tools fit; %s calls them:\n", len(found), len(tools), callTool.Name)
	for _, t := range found[:min(len(found), maxFound)] {
		b.WriteString(define(t) + "\n")
	}
	if more := len(found) - maxFound; more > 0 {
		fmt.Fprintf(&b, "%d more fit; say more precisely what the tool shall do.\n", more)
	}
	return b.String(), nil
}

// define returns a definition as the model reads it.
func define(t schema.Tool) string {
	params := json.RawMessage(t.Parameters)
	if !json.Valid(params) || len(params) > maxFoundText {
		params = json.RawMessage(`"any object; a call says what is wrong with it"`)
	}
	text, _ := json.Marshal(struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}{t.Name, schema.Cut(t.Description, maxFoundText), params})
	return string(text)
}

// search returns the tools that have a word of the query in name or description, those with most of them first.
func search(tools []schema.Tool, query string) []schema.Tool {
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return strings.ContainsRune(" \t\n_-./:,;", r) })
	points := make(map[string]int, len(tools))
	var found []schema.Tool
	for _, t := range tools {
		name, text := strings.ToLower(t.Name), strings.ToLower(t.Description)
		n := 0
		if name == strings.ToLower(strings.TrimSpace(query)) {
			n = 1000
		}
		for _, w := range words {
			if strings.Contains(name, w) {
				n += 3
			}
			if strings.Contains(text, w) {
				n++
			}
		}
		if n > 0 {
			points[t.Name] = n
			found = append(found, t)
		}
	}
	slices.SortStableFunc(found, func(a, b schema.Tool) int {
		return cmp.Or(points[b.Name]-points[a.Name], strings.Compare(a.Name, b.Name))
	})
	return found
}
