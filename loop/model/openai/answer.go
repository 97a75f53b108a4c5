package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/loop/model/internal/dialect"
	"github.com/jetcrew/jetcrew/schema"
)

// answer is a Response that is still being put together.
type answer struct {
	at      *dialect.Endpoint
	delta   func(model.Delta)
	text    dialect.Text
	thought dialect.Text
	refusal dialect.Text
	calls   dialect.Assembler
	whole   []schema.RawCall // of an answer that is not streamed
	usage   schema.Usage
	model   string
	finish  string
	seen    bool // anything of the message
	done    bool // the stream said that it is complete
}

// read reads the answer in the form that the endpoint chose, which is not always the one it was asked for.
func (c *Client) read(res *http.Response, delta func(model.Delta)) (*model.Response, error) {
	a := &answer{at: &c.at, delta: delta}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	var err error
	switch {
	case kind == "text/html":
		return nil, c.at.NotAnAPI(kind)
	case kind == "text/event-stream", kind != "application/json" && delta != nil:
		err = a.readStream(res)
	default:
		err = a.readWhole(res.Body)
	}
	if err != nil {
		return nil, err
	}
	return a.response()
}

func (a *answer) readWhole(body io.Reader) error {
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var doc completion
	if err := json.Unmarshal(data, &doc); err != nil {
		return a.at.Broken("the answer is not JSON", err)
	}
	a.done = true
	if err := a.header(&doc, data); err != nil {
		return err
	}
	for _, ch := range doc.Choices {
		if ch.Index != 0 || ch.Message == nil {
			continue
		}
		a.add(ch.Message)
		a.finish = ch.Finish
		for _, t := range ch.Message.ToolCalls {
			if t != nil {
				a.whole = append(a.whole, schema.RawCall{ID: t.ID.Text(), Name: t.Function.Name.Text(), Args: t.Function.Arguments.Text()})
			}
		}
	}
	return nil
}

func (a *answer) readStream(res *http.Response) error {
	events := ssestream.NewDecoder(res)
	for events.Next() {
		data := bytes.TrimSpace(events.Event().Data)
		if string(data) == "[DONE]" {
			a.done = true
			return nil
		}
		if err := a.chunk(data); err != nil {
			return err
		}
	}
	return events.Err()
}

func (a *answer) chunk(data []byte) error {
	var doc completion
	if err := json.Unmarshal(data, &doc); err != nil {
		return a.at.Broken("a chunk of the stream is not JSON", err)
	}
	if err := a.header(&doc, data); err != nil {
		return err
	}
	for _, ch := range doc.Choices {
		if ch.Index != 0 {
			continue
		}
		a.finish = cmp.Or(ch.Finish, a.finish)
		if ch.Delta == nil {
			continue
		}
		a.add(ch.Delta)
		if err := a.calls.Chunk(pieces(ch.Delta.ToolCalls)...); err != nil {
			return a.at.Broken("the stream cannot be read", err)
		}
	}
	return nil
}

// header takes what a whole answer and each chunk have beside the message.
func (a *answer) header(doc *completion, data []byte) error {
	if e := bytes.TrimSpace(doc.Error); len(e) > 0 && string(e) != "null" {
		return a.at.StreamRefusal(data)
	}
	a.model = cmp.Or(a.model, doc.Model)
	if u := doc.Usage; u != nil {
		a.usage = schema.Usage{Input: u.Prompt, Output: u.Completion, CacheRead: u.Details.Cached, CacheWrite: u.Details.Written}
	}
	return nil
}

func (a *answer) add(m *wireMessage) {
	a.seen = true
	d := model.Delta{Text: a.text.Add(m.Content.text), Reasoning: a.thought.Add(m.thought())}
	d.Text += a.refusal.Add(m.Refusal)
	if a.delta != nil && d != (model.Delta{}) {
		a.delta(d)
	}
}

func pieces(in []*toolCall) []dialect.Piece {
	var out []dialect.Piece
	for _, t := range in {
		if t != nil {
			out = append(out, dialect.Piece{Index: t.Index.n, ID: t.ID.Text(), Name: t.Function.Name.Text(), Args: t.Function.Arguments})
		}
	}
	return out
}

func (a *answer) response() (*model.Response, error) {
	if !a.seen {
		return nil, a.at.Broken("the answer has no message", nil)
	}
	if !a.done && a.finish == "" {
		return nil, a.at.Broken("the stream ended before the answer was complete", io.ErrUnexpectedEOF)
	}
	calls, err := a.calls.Calls()
	if err != nil {
		return nil, a.at.Broken("the stream cannot be read", err)
	}
	if a.whole != nil {
		calls = a.whole
	}
	r := &model.Response{Text: a.text.String(), Calls: calls, Usage: a.usage, Model: cmp.Or(a.model, a.at.Model)}
	r.Finish, err = a.finished(len(calls))
	if err != nil {
		return nil, err
	}
	if r.Finish == schema.FinishRefused {
		r.Text, r.Calls = cmp.Or(r.Text, a.refusal.String()), nil // what a filter cut must not run
	}
	return r, nil
}

// finished translates the reason. Some endpoints say stop though there are calls.
func (a *answer) finished(calls int) (schema.Finish, error) {
	switch {
	case a.finish == "content_filter" || a.refusal.String() != "":
		return schema.FinishRefused, nil
	case a.finish == "length" || a.finish == "max_tokens":
		return schema.FinishLength, nil
	case a.finish == "error" || a.finish == "insufficient_system_resource":
		return "", a.at.Broken("the provider gave up in the middle of the answer", errors.New(a.finish))
	case calls > 0:
		return schema.FinishCalls, nil
	}
	return schema.FinishStop, nil
}
