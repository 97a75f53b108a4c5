package replay

import (
	"encoding/json"

	"github.com/jetcrew/jetcrew/schema"
)

// Record makes a transcript of a finished run: the tools its agent saw and its memory.
func Record(id string, tools []schema.Tool, memory []schema.Message) Transcript {
	t := Transcript{ID: id, Tools: make([]Tool, 0, len(tools)), Messages: make([]Message, 0, len(memory))}
	for _, d := range tools {
		t.Tools = append(t.Tools, Tool{Name: d.Name, Description: d.Description, Parameters: parameters(d)})
	}
	for _, m := range memory {
		t.Messages = append(t.Messages, Message{
			Role: m.Role, Content: Content(schema.CleanText(m.Text)), ToolCalls: toolCalls(m.Calls), ToolCallID: m.Label, Name: m.Name,
		})
	}
	return t
}

// parameters returns the tool's schema; that of a tool without one, or with one that is not JSON, takes any object.
func parameters(d schema.Tool) json.RawMessage {
	if !json.Valid([]byte(d.Parameters)) {
		return json.RawMessage(`{"type":"object"}`)
	}
	return json.RawMessage(d.Parameters)
}

func toolCalls(in []schema.MessageCall) []ToolCall {
	var out []ToolCall
	for _, c := range in {
		out = append(out, ToolCall{ID: c.Label, Type: "function", Function: Function{Name: c.Name, Arguments: Arguments(c.Args)}})
	}
	return out
}
