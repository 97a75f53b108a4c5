package anthropic

import (
	"encoding/json"

	"github.com/jetcrew/jetcrew/loop/model/internal/dialect"
	"github.com/jetcrew/jetcrew/schema"
)

// The types of events and blocks.
const (
	eventStart      = "message_start"
	eventBlockStart = "content_block_start"
	eventBlockDelta = "content_block_delta"
	eventDelta      = "message_delta"
	eventStop       = "message_stop"
	eventError      = "error"

	blockText     = "text"
	blockCall     = "tool_use"
	blockThinking = "thinking"
)

// reply is an answer that is not streamed, and what message_start holds.
type reply struct {
	Type    string            `json:"type"`
	Model   string            `json:"model"`
	Content []json.RawMessage `json:"content"`
	Stop    string            `json:"stop_reason"`
	Details *stopDetails      `json:"stop_details"`
	Usage   *usage            `json:"usage"`
}

type stopDetails struct {
	Explanation string `json:"explanation"`
}

// event is one of a stream. The SDK's own types are not used, since they give no way to see what an endpoint really
// sent.
type event struct {
	Type    string          `json:"type"`
	Message *reply          `json:"message"`
	Index   *int            `json:"index"`
	Block   json.RawMessage `json:"content_block"`
	Delta   struct {
		Text      dialect.Str  `json:"text"`
		JSON      dialect.Str  `json:"partial_json"`
		Thinking  dialect.Str  `json:"thinking"`
		Signature dialect.Str  `json:"signature"`
		Stop      string       `json:"stop_reason"`
		Details   *stopDetails `json:"stop_details"`
	} `json:"delta"`
	Usage *usage `json:"usage"`
}

// block has the fields of a block that are ours to read.
type block struct {
	Type     string          `json:"type"`
	Text     dialect.Str     `json:"text"`
	Thinking dialect.Str     `json:"thinking"`
	ID       dialect.Str     `json:"id"`
	Name     dialect.Str     `json:"name"`
	Input    json.RawMessage `json:"input"`
}

// usage counts tokens; in a stream the later count of a kind replaces the earlier.
type usage struct {
	Input   *int64 `json:"input_tokens"`
	Output  *int64 `json:"output_tokens"`
	Read    *int64 `json:"cache_read_input_tokens"`
	Written *int64 `json:"cache_creation_input_tokens"`
}

func (u *usage) merge(v *usage) {
	if v == nil {
		return
	}
	for _, f := range []struct{ to, from **int64 }{
		{&u.Input, &v.Input}, {&u.Output, &v.Output}, {&u.Read, &v.Read}, {&u.Written, &v.Written},
	} {
		if *f.from != nil {
			*f.to = *f.from
		}
	}
}

// total returns the counts in our words: the provider's input leaves out what concerns the cache, ours does not.
func (u *usage) total() schema.Usage {
	n := func(p *int64) int64 {
		if p == nil {
			return 0
		}
		return *p
	}
	return schema.Usage{
		Input: n(u.Input) + n(u.Read) + n(u.Written), Output: n(u.Output),
		CacheRead: n(u.Read), CacheWrite: n(u.Written),
	}
}
