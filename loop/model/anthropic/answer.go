package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/loop/model/internal/dialect"
	"github.com/jetcrew/jetcrew/schema"
)

// answer is a Response that is still being put together.
type answer struct {
	at     *dialect.Endpoint
	delta  func(model.Delta)
	blocks blocks
	usage  usage
	model  string
	stop   string
	why    string // a refusal's explanation
	seen   bool   // the beginning of the message
	done   bool   // its end
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
	var doc reply
	if err := json.Unmarshal(data, &doc); err != nil {
		return a.at.Broken("the answer is not JSON", err)
	}
	if doc.Type == eventError {
		return a.at.StreamRefusal(data)
	}
	a.seen, a.done = doc.Content != nil || doc.Stop != "", true
	a.header(&doc)
	a.end(doc.Stop, doc.Details)
	for i, raw := range doc.Content {
		d, err := a.blocks.begin(i, raw)
		if err != nil {
			return a.at.Broken("the answer cannot be read", err)
		}
		a.show(d)
	}
	return nil
}

func (a *answer) readStream(res *http.Response) error {
	events := ssestream.NewDecoder(res)
	for !a.done && events.Next() {
		data := bytes.TrimSpace(events.Event().Data)
		if len(data) == 0 {
			continue
		}
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return a.at.Broken("an event of the stream is not JSON", err)
		}
		if e.Type == eventError {
			return a.at.StreamRefusal(data)
		}
		if err := a.event(&e); err != nil {
			return a.at.Broken("the stream cannot be read", err)
		}
	}
	if a.done {
		return nil
	}
	return events.Err()
}

// event takes one event; those of unknown types, such as ping, say nothing.
func (a *answer) event(e *event) error {
	switch e.Type {
	case eventStart:
		a.seen = true
		if e.Message != nil {
			a.header(e.Message)
		}
	case eventBlockStart:
		if e.Index == nil {
			return errors.New("a block has no index")
		}
		if a.blocks.at[*e.Index] != nil {
			return fmt.Errorf("%w: two blocks have index %d", dialect.ErrAmbiguous, *e.Index)
		}
		d, err := a.blocks.begin(*e.Index, e.Block)
		a.show(d)
		return err
	case eventBlockDelta:
		d, err := a.blocks.add(e)
		a.show(d)
		return err
	case eventDelta:
		a.usage.merge(e.Usage)
		a.end(e.Delta.Stop, e.Delta.Details)
	case eventStop:
		a.done = true
	}
	return nil
}

func (a *answer) header(r *reply) {
	a.model = r.Model
	a.usage.merge(r.Usage)
}

func (a *answer) end(stop string, d *stopDetails) {
	a.stop = cmp.Or(stop, a.stop)
	if d != nil {
		a.why = cmp.Or(d.Explanation, a.why)
	}
}

func (a *answer) show(d model.Delta) {
	if a.delta != nil && d != (model.Delta{}) {
		a.delta(d)
	}
}

func (a *answer) response() (*model.Response, error) {
	if !a.seen {
		return nil, a.at.Broken("the answer has no message", nil)
	}
	if !a.done && a.stop == "" {
		return nil, a.at.Broken("the stream ended before the answer was complete", io.ErrUnexpectedEOF)
	}
	text, calls, items, err := a.blocks.finish()
	if err != nil {
		return nil, a.at.Broken("the stream cannot be read", err)
	}
	r := &model.Response{Text: text, Calls: calls, Items: items, Usage: a.usage.total(), Model: cmp.Or(a.model, a.at.Model)}
	r.Finish = a.finished(len(calls))
	if r.Finish == schema.FinishRefused {
		// What a refusal cut must not run, and its blocks are not to be sent back.
		r.Text, r.Calls, r.Items = cmp.Or(r.Text, a.why), nil, nil
	}
	return r, nil
}

func (a *answer) finished(calls int) schema.Finish {
	switch {
	case a.stop == "refusal":
		return schema.FinishRefused
	case a.stop == "max_tokens" || a.stop == "model_context_window_exceeded":
		return schema.FinishLength
	case calls > 0:
		return schema.FinishCalls
	}
	return schema.FinishStop
}
