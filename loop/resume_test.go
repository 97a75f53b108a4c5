package loop_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// scatter is a model whose ids of calls differ in every answer, even to the same prompt.
type scatter struct {
	*hosting
	mu   sync.Mutex
	last *model.Request
}

func (s *scatter) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	s.mu.Lock()
	s.last = req
	s.mu.Unlock()
	r, err := s.hosting.Generate(ctx, req)
	if err != nil {
		return nil, err
	}
	for i := range r.Calls {
		r.Calls[i].ID = schema.NewID()
	}
	return r, nil
}

// host is hosting.host with this model.
func (s *scatter) host(t *testing.T, steps int) *loop.Host {
	t.Helper()
	host, err := loop.NewHost(loop.HostConfig{
		Config: loop.Config{Bus: &mortal{Bus: s.bus, left: steps}, Principal: somebody()},
		Find:   func(string) (schema.AgentSpec, bool) { return s.cfg.Agent, true },
		Equip: func(context.Context, schema.AgentSpec) (loop.Model, loop.Registry, error) {
			return s, s.bus, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// shown returns the outputs in the last request's prompt, in their order.
func (s *scatter) shown() (outputs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.last.Messages {
		if m.Role == schema.RoleTool {
			outputs = append(outputs, m.Text)
		}
	}
	return outputs
}

func wantOutputs(t *testing.T, got []string, calls int) {
	t.Helper()
	if len(got) != calls {
		t.Fatalf("the model sees %d outputs, want %d", len(got), calls)
	}
	for i, text := range got {
		if text != fmt.Sprintf("1.%d", i) {
			t.Errorf("output %d is %q", i, text)
		}
	}
}

// TestD35ResumeByPosition: when the first calls of a turn have finished before the owner dies, the next owner runs exactly
// the others, whatever ids the provider gives.
func TestD35ResumeByPosition(t *testing.T) {
	t.Parallel()
	const calls, written = 4, 4 // open, own, say, turn
	for finished := range calls {
		t.Run(fmt.Sprintf("%d finished", finished), func(t *testing.T) {
			t.Parallel()
			s := &scatter{hosting: newHosting(map[int]*model.Response{1: {Calls: raw("count", "count", "count", "count"), Finish: schema.FinishCalls}})}
			s.host(t, written+finished).Take(t.Context(), starter("r", `{"task":"go"}`))
			for i := range calls {
				if has := s.bus.Fact("r", schema.ResultKey(1, i, "test"), new(schema.Result)); has != (i < finished) {
					t.Fatalf("result %d recorded: %t; facts %v", i, has, s.bus.Keys("r"))
				}
			}
			if got := s.host(t, forever).Take(t.Context(), starter("r", `{"task":"go"}`)); got.Act != schema.TakenDone {
				t.Fatalf("%+v", got)
			}
			for call, times := range s.ran {
				if times != 1 {
					t.Errorf("call %s ran %d times", call, times)
				}
			}
			if len(s.ran) != calls || s.asked[1] != 1 {
				t.Errorf("ran %v, turn 1 was asked %d times", s.ran, s.asked[1])
			}
			wantOutputs(t, s.shown(), calls)
		})
	}
}

// TestD13ResumeKeepsAllResults: a run of 50 calls that ended as usual goes on elsewhere with every one of its outputs.
func TestD13ResumeKeepsAllResults(t *testing.T) {
	t.Parallel()
	const calls = 50
	names := make([]string, calls)
	for i := range names {
		names[i] = "count"
	}
	s := &scatter{hosting: newHosting(map[int]*model.Response{1: {Calls: raw(names...), Finish: schema.FinishCalls}})}
	s.host(t, forever).Take(t.Context(), starter("r", `{"task":"go","keep":true}`))
	s.append(t, "r", schema.SayKey(2), &schema.Say{Role: schema.RoleUser, Text: "and now?"})
	s.host(t, forever).Take(t.Context(), schema.RunMessage{Run: "r", Seq: 9})
	if m := s.memory(t, "r"); m.Answers() != 2 || len(s.ran) != calls {
		t.Errorf("%d answers, %d calls ran; facts %v", m.Answers(), len(s.ran), s.bus.Keys("r"))
	}
	wantOutputs(t, s.shown(), calls)
}
