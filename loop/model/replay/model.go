package replay

import (
	"context"
	"fmt"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// Provider is the provider's name in an agent file.
const Provider = "replay"

// Model answers with what was recorded. It may be used from several goroutines; the transcripts must not change.
type Model struct {
	list []Transcript
	byID map[string]*Transcript
}

// New returns a model of these transcripts.
func New(list ...Transcript) *Model {
	m := &Model{list: list, byID: map[string]*Transcript{}}
	for i := range list {
		m.byID[list[i].ID] = &list[i]
	}
	return m
}

// Generate returns the recorded answer of the request's turn, whatever the prompt says. The transcript is the one
// whose id is the request's agent; a model of a single transcript answers every agent. Past the end it returns
// model.ErrEnd.
func (m *Model) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	t := m.find(req.Agent)
	if t == nil {
		return nil, &model.Error{Kind: model.BadRequest, Message: fmt.Sprintf("replay: no transcript has the id %q", req.Agent)}
	}
	r := t.answer(req.Turn)
	if r == nil {
		return nil, fmt.Errorf("replay %s, turn %d: %w", t.ID, req.Turn, model.ErrEnd)
	}
	if req.Delta != nil && r.Text != "" {
		req.Delta(model.Delta{Text: r.Text})
	}
	return r, nil
}

func (m *Model) find(id string) *Transcript {
	if len(m.list) == 1 {
		return &m.list[0]
	}
	return m.byID[id]
}

// answer returns the n-th answer, nil when there is none.
func (t *Transcript) answer(n int) *model.Response {
	i := t.find(n)
	if i < 0 {
		return nil
	}
	r := &model.Response{Text: string(t.Messages[i].Content), Calls: t.Calls(n), Finish: schema.FinishStop, Model: Provider + "/" + t.ID}
	if len(r.Calls) > 0 {
		r.Finish = schema.FinishCalls
	}
	return r
}
