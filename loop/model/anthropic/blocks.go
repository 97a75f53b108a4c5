package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/loop/model/internal/dialect"
	"github.com/jetcrew/jetcrew/schema"
)

// errOrphan: a delta for a block that was never begun.
var errOrphan = errors.New("a delta belongs to no block")

// blocks puts the blocks of an answer together, streamed or not.
type blocks struct {
	list  []*building
	at    map[int]*building
	calls dialect.Assembler
}

// building is a block that is still arriving.
type building struct {
	typ       string
	fields    object // of a block that is kept whole
	text      dialect.Text
	thinking  dialect.Text
	signature dialect.Text
	input     []byte // of a provider's own call
}

// begin opens the block at an index.
func (b *blocks) begin(index int, raw json.RawMessage) (model.Delta, error) {
	var in block
	if err := json.Unmarshal(raw, &in); err != nil {
		return model.Delta{}, err
	}
	cur := &building{typ: in.Type}
	b.list = append(b.list, cur)
	if b.at == nil {
		b.at = map[int]*building{}
	}
	b.at[index] = cur
	switch in.Type {
	case blockText:
		return model.Delta{Text: cur.text.Add(in.Text)}, nil
	case blockCall:
		return model.Delta{}, b.calls.Chunk(dialect.Piece{Index: &index, ID: in.ID.Text(), Name: in.Name.Text(), Args: given(in.Input)})
	}
	cur.fields = decodeBlock(raw)
	return model.Delta{Reasoning: cur.thinking.Add(in.Thinking)}, nil
}

// given returns the arguments that a block began with; in a stream it begins with {} or null, which says nothing.
func given(input json.RawMessage) dialect.Str {
	if s := string(bytes.TrimSpace(input)); s == "{}" || s == "null" {
		return nil
	}
	return dialect.Str(input)
}

// add takes a delta of the block at an index.
func (b *blocks) add(e *event) (model.Delta, error) {
	if e.Index == nil || b.at[*e.Index] == nil {
		return model.Delta{}, errOrphan
	}
	cur := b.at[*e.Index]
	if cur.typ == blockCall {
		return model.Delta{}, b.calls.Chunk(dialect.Piece{Index: e.Index, Args: e.Delta.JSON})
	}
	cur.input = append(cur.input, e.Delta.JSON...)
	cur.signature.Add(e.Delta.Signature)
	return model.Delta{Text: cur.text.Add(e.Delta.Text), Reasoning: cur.thinking.Add(e.Delta.Thinking)}, nil
}

// finish returns the text, the calls and what must be sent back.
func (b *blocks) finish() (text string, calls []schema.RawCall, items *schema.Items, err error) {
	if calls, err = b.calls.Calls(); err != nil {
		return "", nil, nil, err
	}
	for i := range calls {
		calls[i].Args = canonical(calls[i].Args)
	}
	var all strings.Builder
	var kept []item
	for _, cur := range b.list {
		switch cur.typ {
		case blockText:
			t := cur.text.String()
			all.WriteString(t)
			if t != "" {
				kept = append(kept, item{Text: len(t)})
			}
		case blockCall:
			kept = append(kept, item{Call: true})
		default:
			if raw := cur.whole(); raw != nil {
				kept = append(kept, item{Block: raw})
			}
		}
	}
	return all.String(), calls, keep(kept), nil
}

// canonical returns arguments without the white space that only one of the two forms of an answer has.
func canonical(args string) string {
	if strings.TrimSpace(args) == "" {
		return "{}"
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(args)) != nil {
		return args
	}
	return b.String()
}

// whole returns a block that is kept, with its deltas filled in; nil: thinking that was cut before its signature, which
// the provider would refuse.
func (b *building) whole() json.RawMessage {
	for name, text := range map[string]string{"thinking": b.thinking.String(), "signature": b.signature.String()} {
		if text != "" {
			b.fields[name] = text
		}
	}
	if signed, _ := b.fields["signature"].(string); b.typ == blockThinking && signed == "" {
		return nil
	}
	if json.Valid(b.input) {
		b.fields["input"] = json.RawMessage(dialect.Repair(b.input))
	}
	return dialect.Encode(b.fields)
}
