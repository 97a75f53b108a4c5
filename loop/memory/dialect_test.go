package memory_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/loop/model/anthropic"
	"github.com/jetcrew/jetcrew/loop/model/openai"
	"github.com/jetcrew/jetcrew/schema"
)

// wire takes a client's request in place of the provider, which is not there.
type wire struct{ body []byte }

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	w.body = body
	return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(nil)), Request: req}, err
}

// sent returns what a client makes of msgs.
func sent[T any](t *rapid.T, w *wire, client interface {
	Generate(context.Context, *model.Request) (*model.Response, error)
}, msgs []schema.Message,
) (body T) {
	_, _ = client.Generate(context.Background(), &model.Request{Messages: msgs})
	if err := json.Unmarshal(w.body, &body); err != nil {
		t.Fatal(err)
	}
	return body
}

// TestD14CompactedMemoryIsValidForProviders: what a compacted memory becomes in either dialect keeps the rules by which
// the providers refuse a request.
func TestD14CompactedMemoryIsValidForProviders(t *testing.T) {
	t.Parallel()
	var w wire
	httpClient := &http.Client{Transport: &w}
	gpt, err := openai.New(openai.Config{Model: "m", APIKey: "k", BaseURL: "http://127.0.0.1:1/v1", HTTPClient: httpClient})
	if err != nil {
		t.Fatal(err)
	}
	claude, err := anthropic.New(anthropic.Config{Model: "m", APIKey: "k", BaseURL: "http://127.0.0.1:1", HTTPClient: httpClient})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		l := drawLife(t, func(*life) {})
		l.compact()
		msgs := l.run.Messages()
		checkOpenAI(t, sent[openaiBody](t, &w, gpt, msgs))
		checkAnthropic(t, sent[anthropicBody](t, &w, claude, msgs))
	})
}

type openaiBody struct {
	Messages []struct {
		Role      string
		Content   *string
		CallID    string `json:"tool_call_id"`
		ToolCalls []struct {
			ID       string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
}

// checkOpenAI: the tool messages that answer an assistant's calls follow it at once, one for each, and stand nowhere else.
func checkOpenAI(t *rapid.T, body openaiBody) {
	var open []string
	for i, m := range body.Messages {
		if m.Role == "tool" {
			at := slices.Index(open, m.CallID)
			if at < 0 || m.Content == nil || *m.Content == "" {
				t.Fatalf("message %d answers %q, open are %q", i, m.CallID, open)
			}
			open = slices.Delete(open, at, at+1)
			continue
		}
		if len(open) > 0 {
			t.Fatalf("message %d: calls %q have no result", i, open)
		}
		if m.Content == nil && len(m.ToolCalls) == 0 {
			t.Fatalf("message %d says nothing", i)
		}
		for _, c := range m.ToolCalls {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		t.Fatalf("calls %q have no result", open)
	}
}

type anthropicBody struct {
	Messages []struct {
		Role    string
		Content []struct {
			Type  string
			ID    string
			UseID string `json:"tool_use_id"`
		}
	}
}

// checkAnthropic: the user begins, roles alternate, and the blocks that answer an assistant's calls stand at the head of
// the next message, one for each, and nowhere else.
func checkAnthropic(t *rapid.T, body anthropicBody) {
	var open []string
	for i, m := range body.Messages {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want || len(m.Content) == 0 {
			t.Fatalf("message %d is the %s's with %d blocks", i, m.Role, len(m.Content))
		}
		for _, b := range m.Content {
			switch at := slices.Index(open, b.UseID); {
			case b.Type == "tool_result" && at < 0, b.Type != "tool_result" && m.Role == "user" && len(open) > 0:
				t.Fatalf("message %d: %+v while %q are open", i, b, open)
			case b.Type == "tool_result":
				open = slices.Delete(open, at, at+1)
			}
		}
		if len(open) > 0 {
			t.Fatalf("message %d leaves calls %q without a result", i, open)
		}
		for _, b := range m.Content {
			if b.Type == "tool_use" {
				open = append(open, b.ID)
			}
		}
	}
	if len(open) > 0 {
		t.Fatalf("calls %q have no result", open)
	}
}
