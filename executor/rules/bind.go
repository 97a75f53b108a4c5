package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jetcrew/jetcrew/schema"
)

// The variables of texts to bind, between "${" and "}".
const (
	bindPrincipal = "principal.id"
	bindTenant    = "principal.tenant"
	bindRun       = "run"
	bindAgent     = "agent"
)

func bindVariables() []string { return []string{bindPrincipal, bindTenant, bindRun, bindAgent} }

// binding are values that a tool gets beside the model's arguments.
type binding struct {
	rule  string
	keys  []string // reserved: the model must not give them
	parts []part   // of the JSON text
}

// part is a piece of JSON text, then the value of a variable within a JSON string; no variable: nothing.
type part struct{ text, variable string }

// check refuses a call whose arguments hold what is bound.
func (b *binding) check(c *schema.TurnCall) schema.Decision {
	if key, ok := findKey(c.Args, b.keys); ok {
		return schema.Decision{
			Action: schema.ActionInvalid, Rule: b.rule, Type: schema.InvalidArguments,
			Text: fmt.Sprintf("%.80q is set by the system; leave it out", key),
		}
	}
	return schema.Decision{}
}

// bind sets the values, beside those that another guard has bound. What cannot be bound denies the call: without the
// tenant, for one, a tool might look at the data of all.
func (b *binding) bind(c *schema.TurnCall, scene *schema.Scene) schema.Decision {
	text, missing := b.fill(scene)
	if missing != "" {
		return b.deny("the tool needs %s, and this run has none", missing)
	}
	if c.Bound != "" && c.Bound != emptyObject {
		if key, ok := findKey(c.Bound, b.keys); ok {
			return b.deny("%.80q is bound already", key)
		}
		text = c.Bound[:len(c.Bound)-1] + "," + text[1:]
	}
	c.Bound = text
	return schema.Decision{}
}

const emptyObject schema.JSONText = "{}"

func (b *binding) deny(format string, args ...any) schema.Decision {
	return schema.Decision{Action: schema.ActionDeny, Rule: b.rule, Text: fmt.Sprintf(format, args...)}
}

// fill returns the JSON text with the values of its variables, or the name of one that has none.
func (b *binding) fill(scene *schema.Scene) (text schema.JSONText, missing string) {
	if len(b.parts) == 1 {
		return schema.JSONText(b.parts[0].text), ""
	}
	var out strings.Builder
	plain := true
	for _, p := range b.parts {
		out.WriteString(p.text)
		if p.variable == "" {
			continue
		}
		v := valueOf(p.variable, scene)
		if v == "" {
			return "", p.variable
		}
		if !strings.ContainsFunc(v, special) {
			out.WriteString(v)
			continue
		}
		quoted, _ := json.Marshal(v) // of a string: no error
		out.Write(quoted[1 : len(quoted)-1])
		plain = false
	}
	if plain {
		return schema.JSONText(out.String()), ""
	}
	text, _, _ = schema.Canonical(out.String()) // of what is JSON already: no error
	return text, ""
}

// special tells whether a character is not itself within a JSON string.
func special(r rune) bool { return r < ' ' || r >= 0x7f || r == '"' || r == '\\' }

func valueOf(variable string, scene *schema.Scene) string {
	switch variable {
	case bindPrincipal:
		return scene.Principal.ID
	case bindTenant:
		return scene.Principal.Tenant
	case bindRun:
		return scene.Run
	case bindAgent:
		return scene.Agent
	}
	return ""
}

// binding compiles values to bind; nil when there are none.
func (c *compiler) binding(path string, values schema.JSONText) *binding {
	if !strings.HasPrefix(strings.TrimSpace(string(values)), "{") {
		c.problems.add(path, CodeBind, "the values to bind have to be an object, of names and values")
		return nil
	}
	text, _, bad := schema.Canonical(string(values))
	if bad != nil {
		c.problems.add(path, CodeBind, "%s", strings.TrimPrefix(bad.Message, "arguments are "))
		return nil
	}
	b := &binding{rule: path, parts: c.parts(path, string(text))}
	for key := range schema.Fields(text) {
		if slices.ContainsFunc(b.keys, func(k string) bool { return strings.EqualFold(k, key) }) {
			c.problems.add(path, CodeBind, "%.80q is there twice, but for upper and lower case; there are readers of JSON to which they are the same", key)
		}
		b.keys = append(b.keys, key)
	}
	if len(b.keys) == 0 {
		return nil
	}
	return b
}

// findKey returns the first of the keys that the object has at its top, in whichever case.
func findKey(object schema.JSONText, keys []string) (string, bool) {
	for k := range schema.Fields(object) {
		if slices.ContainsFunc(keys, func(bound string) bool { return strings.EqualFold(bound, k) }) {
			return k, true
		}
	}
	return "", false
}

// parts cuts canonical JSON text at the variables in its strings.
func (c *compiler) parts(path, text string) []part {
	var parts []part
	from := 0 // what comes from here on is in no part yet
	for i := 0; i < len(text); i++ {
		if text[i] != '"' {
			continue
		}
		end := schema.StringEnd(text, i)
		if strings.HasPrefix(text[end:], ":") {
			if strings.Contains(text[i:end], "${") {
				c.problems.add(path, CodeBind, "%.80s: variables stand in values, not in names", text[i:end])
			}
			i = end
			continue
		}
		parts, from = c.cut(path, parts, text[:end], i, from)
		i = end - 1
	}
	return append(parts, part{text: text[from:]})
}

// cut adds the parts that end in the string from start to the end of text, and returns from where the next one goes on. A
// "$${" is the text "${".
func (c *compiler) cut(path string, parts []part, text string, start, from int) ([]part, int) {
	for i := start; ; {
		at := strings.Index(text[i:], "${")
		if at < 0 {
			return parts, from
		}
		at += i
		if at > from && text[at-1] == '$' {
			parts = append(parts, part{text: text[from : at-1]})
			from, i = at, at+len("${")
			continue
		}
		name, _, closed := strings.Cut(text[at+len("${"):len(text)-1], "}")
		if !closed {
			c.problems.add(path, CodeBind, "%.80s: ${ without }; write $${ where the text itself is meant", text[start:])
			return parts, from
		}
		c.variable(path, name)
		parts = append(parts, part{text[from:at], name})
		i = at + len("${}") + len(name)
		from = i
	}
}

func (c *compiler) variable(path, name string) {
	if !slices.Contains(bindVariables(), name) {
		c.problems.add(path, CodeUnknown, "${%.80s} is no variable; there are %s", name, list(bindVariables()))
	}
}
