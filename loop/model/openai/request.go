package openai

import (
	"strings"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/loop/model/internal/dialect"
	"github.com/jetcrew/jetcrew/schema"
)

// idRule is what the protocol takes as the id of a call. OpenAI refuses ids of more than 40 characters; other
// endpoints expect their own ids back, whatever signs those have.
var idRule = dialect.IDRule{Max: 40, OK: dialect.PrintableChar}

// toolRule is what the protocol takes of a tool. Only some models refuse a description of more than 1,024 characters,
// and there is no telling which.
var toolRule = dialect.ToolRule{Description: 1024}

type object = map[string]any

func encodeRequest(name string, req *model.Request, fit []dialect.Fitted, names *dialect.Names) ([]byte, error) {
	body := object{"model": name, "messages": messages(req.Messages, names)}
	if len(fit) > 0 {
		body["tools"] = tools(fit, names)
	}
	if req.Delta != nil {
		body["stream"] = true
		body["stream_options"] = object{"include_usage": true}
	}
	if err := dialect.Merge(body, req.Options); err != nil {
		return nil, err
	}
	if req.Delta == nil {
		delete(body, "stream_options") // an error without stream
	}
	if len(fit) == 0 {
		delete(body, "tool_choice") // an error without tools
	}
	return dialect.Encode(body), nil
}

func tools(in []dialect.Fitted, names *dialect.Names) []object {
	out := make([]object, len(in))
	for i, t := range in {
		f := object{"name": names.Encode(t.Name), "parameters": t.Parameters}
		if t.Description != "" {
			f["description"] = t.Description
		}
		out[i] = object{"type": "function", "function": f}
	}
	return out
}

func messages(in []schema.Message, names *dialect.Names) []object {
	out := make([]object, 0, len(in))
	for _, e := range dialect.History(in, names, idRule) {
		out = append(out, message(e))
		for i, r := range e.Results {
			out = append(out, object{"role": "tool", "tool_call_id": e.Calls[i].ID, "content": r.Text})
		}
	}
	return out
}

func message(e dialect.Entry) object {
	m := object{"role": e.Role, "content": e.Text}
	if e.Role != schema.RoleAssistant {
		return m
	}
	empty := strings.TrimSpace(e.Text) == ""
	switch {
	case len(e.Calls) == 0 && empty:
		m["content"] = dialect.NoAnswer
	case empty:
		m["content"] = nil
	}
	if len(e.Calls) > 0 {
		m["tool_calls"] = calls(e.Calls)
	}
	return m
}

func calls(in []dialect.Call) []object {
	out := make([]object, len(in))
	for i, c := range in {
		out[i] = object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Args}}
	}
	return out
}
