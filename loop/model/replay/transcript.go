package replay

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/jetcrew/jetcrew/schema"
)

// Transcript is one recorded conversation.
type Transcript struct {
	ID       string    `json:"id"`
	Tools    []Tool    `json:"tools"`
	Messages []Message `json:"messages"`
}

// Tool is what the model saw of a tool.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // a JSON Schema
}

// Message is one message in OpenAI's chat form.
type Message struct {
	Role       string     `json:"role"`
	Content    Content    `json:"content"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	Name       string     `json:"name,omitempty"` // tool: the tool's name
}

// Content is a message's text. Read, null is empty and a list of parts is their text; written, it is a string.
type Content string

// UnmarshalJSON reads a string, null or a list of parts with text.
func (c *Content) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		return json.Unmarshal(b, (*string)(c))
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		*c += Content(p.Text)
	}
	return nil
}

// ToolCall is a call of an assistant message.
type ToolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"` // always "function"
	Function Function `json:"function"`
}

// Function is the called tool with the arguments as the model wrote them.
type Function struct {
	Name      string    `json:"name"`
	Arguments Arguments `json:"arguments"`
}

// Arguments is the text of a call's arguments. Read, an object stands for its own text and null for none.
type Arguments string

// UnmarshalJSON reads a string, null or any other JSON value.
func (a *Arguments) UnmarshalJSON(b []byte) error {
	if b[0] == '"' || string(b) == "null" {
		return json.Unmarshal(b, (*string)(a))
	}
	var buf bytes.Buffer
	if err := json.Compact(&buf, b); err != nil {
		return err
	}
	*a = Arguments(buf.String())
	return nil
}

// check says what is wrong with a transcript that was read.
func (t *Transcript) check() error {
	if t.ID == "" {
		return fmt.Errorf("id is missing")
	}
	for i, tool := range t.Tools {
		if tool.Name == "" {
			return fmt.Errorf("tools[%d]: name is missing", i)
		}
	}
	open := 0 // calls that still wait for their output
	for i, m := range t.Messages {
		switch m.Role {
		case schema.RoleAssistant:
			open = len(m.ToolCalls)
		case schema.RoleTool:
			if open--; open < 0 {
				return fmt.Errorf("messages[%d]: a tool message that answers no call", i)
			}
		case schema.RoleSystem, schema.RoleUser:
		default:
			return fmt.Errorf("messages[%d]: role %q: want system, user, assistant or tool", i, m.Role)
		}
	}
	return nil
}
