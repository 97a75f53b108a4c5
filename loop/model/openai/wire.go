package openai

import (
	"encoding/json"

	"github.com/jetcrew/jetcrew/loop/model/internal/dialect"
)

// completion is an answer or a chunk of one: the forms differ only in the key that holds the message. The SDK's own
// types are not used, since they give no way to see what an endpoint really sent.
type completion struct {
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index   int          `json:"index"`
	Message *wireMessage `json:"message"`
	Delta   *wireMessage `json:"delta"`
	Finish  string       `json:"finish_reason"`
}

type wireMessage struct {
	Content          content     `json:"content"`
	Refusal          dialect.Str `json:"refusal"`
	ReasoningContent dialect.Str `json:"reasoning_content"`
	Reasoning        dialect.Str `json:"reasoning"`
	ToolCalls        []*toolCall `json:"tool_calls"`
}

// thought returns the reasoning, whichever of its two names the endpoint uses.
func (m *wireMessage) thought() dialect.Str {
	if len(m.ReasoningContent) > 0 {
		return m.ReasoningContent
	}
	return m.Reasoning
}

type toolCall struct {
	Index    index       `json:"index"`
	ID       dialect.Str `json:"id"`
	Function struct {
		Name      dialect.Str `json:"name"`
		Arguments dialect.Str `json:"arguments"`
	} `json:"function"`
}

// index is the place of a call; missing, null, negative and what is no number are the same.
type index struct{ n *int }

func (x *index) UnmarshalJSON(b []byte) error {
	var n int
	if json.Unmarshal(b, &n) == nil && n >= 0 && string(b) != "null" {
		x.n = &n
	}
	return nil
}

// content is text, or a list of parts of which those with text count.
type content struct{ text dialect.Str }

func (c *content) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		return c.text.UnmarshalJSON(b)
	}
	var parts []struct {
		Text dialect.Str `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		c.text = append(c.text, p.Text...)
	}
	return nil
}

type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Details    struct {
		Cached  int64 `json:"cached_tokens"`
		Written int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
}
