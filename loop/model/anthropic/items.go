package anthropic

import (
	"bytes"
	"encoding/json"

	"github.com/jetcrew/jetcrew/loop/model/internal/dialect"
	"github.com/jetcrew/jetcrew/schema"
)

// item is one block of an answer as it is kept in schema.Items. Blocks that must come back unchanged are kept whole;
// text and calls, which stand in the turn already, are only marked, so that the blocks come back in their order.
type item struct {
	Block json.RawMessage `json:"block,omitempty"` // a thinking block or another of the provider's own
	Text  int             `json:"text,omitempty"`  // so many bytes of the turn's text
	Call  bool            `json:"call,omitempty"`  // the turn's next call
}

// keep returns the items of an answer, nil when none of its blocks must come back.
func keep(items []item) *schema.Items {
	for _, it := range items {
		if it.Block != nil {
			return &schema.Items{Provider: Provider, Data: dialect.Encode(items)}
		}
	}
	return nil
}

// restore returns the blocks of an answer in their order. ok is false when the turn does not match its items any
// more, because its text was changed: the provider's own blocks then come first, and the caller adds the rest.
func restore(e dialect.Entry) (blocks []object, ok bool) {
	var items []item
	if e.Items == nil || e.Items.Provider != Provider || json.Unmarshal(e.Items.Data, &items) != nil {
		return nil, false
	}
	text, calls := e.Text, e.Calls
	ok = true
	for _, it := range items {
		switch {
		case it.Block != nil:
			blocks = append(blocks, decodeBlock(it.Block))
		case it.Call && len(calls) > 0:
			blocks = append(blocks, callBlock(calls[0]))
			calls = calls[1:]
		case it.Text > 0 && it.Text <= len(text):
			blocks = append(blocks, spoken(text[:it.Text])...)
			text = text[it.Text:]
		default:
			ok = false
		}
	}
	if ok && text == "" && len(calls) == 0 {
		return blocks, true
	}
	return own(items), false
}

func own(items []item) (blocks []object) {
	for _, it := range items {
		if it.Block != nil {
			blocks = append(blocks, decodeBlock(it.Block))
		}
	}
	return blocks
}

// decodeBlock reads a block's fields; numbers keep their digits.
func decodeBlock(data []byte) object {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	b := object{}
	if dec.Decode(&b) != nil || b == nil {
		return object{} // what is no object has no fields
	}
	return b
}
