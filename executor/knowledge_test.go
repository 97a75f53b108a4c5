package executor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

// library finds what it is told to and writes down what it was asked.
type library struct {
	hits  []executor.Hit
	err   error
	asked []executor.KnowledgeQuery
}

func (l *library) search(_ context.Context, q executor.KnowledgeQuery) ([]executor.Hit, error) {
	l.asked = append(l.asked, q)
	return l.hits, l.err
}

func hits(n int) []executor.Hit {
	list := make([]executor.Hit, n)
	for i := range list {
		list[i] = executor.Hit{Source: fmt.Sprintf("doc%d", i+1), Text: "text"}
	}
	return list
}

func knowledge(t testing.TB, cfg executor.KnowledgeConfig) *executor.Set {
	t.Helper()
	tool, err := executor.Knowledge(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return quiet(t, tool)
}

func search(tenant, args string) *schema.Call {
	c := call("knowledge_search", args)
	c.Principal.Tenant = tenant
	return c
}

func TestKnowledgeSchemaShowsOnlyTheQuery(t *testing.T) {
	t.Parallel()
	got := knowledge(t, executor.KnowledgeConfig{Dataset: "kb", Search: (&library{}).search}).Tools()[0]
	want := schema.JSONText(`{"properties":{"query":{"type":"string","description":"What to look for, in plain words"}},"additionalProperties":false,"type":"object","required":["query"]}`)
	if got.Parameters != want || got.Name != "knowledge_search" || !got.Idempotent || got.Effect != schema.EffectRead {
		t.Errorf("got %+v", got)
	}
}

// Section 3.1 of tools-and-registry, and RagTool of the notes on the seeds.
func TestKnowledgeSeedRagTool(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		cfg  executor.KnowledgeConfig
		lib  library
		args string
		want string
		asks []executor.KnowledgeQuery
	}{
		{
			"hits with their sources",
			executor.KnowledgeConfig{},
			library{hits: []executor.Hit{{Source: "faq.md", Text: "<30 days>", Score: 0.5}, {Text: "no source"}}},
			`{"query":" returns? "}`, `{"hits":[{"source":"faq.md","text":"<30 days>","score":0.5},{"source":"kb","text":"no source"}]}`,
			[]executor.KnowledgeQuery{{Text: "returns?", Dataset: "kb", TopK: 5, Filter: map[string]any{"tenant": "acme"}}},
		},
		{"blank query", executor.KnowledgeConfig{}, library{hits: hits(1)}, `{"query":" \n"}`, "", nil},
		{"empty query", executor.KnowledgeConfig{}, library{hits: hits(1)}, `{"query":""}`, "", nil},
		{
			"no hits",
			executor.KnowledgeConfig{},
			library{},
			`{"query":"x"}`, `{"hits":[]}`,
			[]executor.KnowledgeQuery{{Text: "x", Dataset: "kb", TopK: 5, Filter: map[string]any{"tenant": "acme"}}},
		},
		{
			"topK below 1 is 5, and more is cut",
			executor.KnowledgeConfig{TopK: -1},
			library{hits: hits(7)},
			`{"query":"x"}`, `{"hits":[{"source":"doc1","text":"text"},{"source":"doc2","text":"text"},{"source":"doc3","text":"text"},{"source":"doc4","text":"text"},{"source":"doc5","text":"text"}]}`,
			[]executor.KnowledgeQuery{{Text: "x", Dataset: "kb", TopK: 5, Filter: map[string]any{"tenant": "acme"}}},
		},
		{
			"topK of one's own",
			executor.KnowledgeConfig{TopK: 1},
			library{hits: hits(7)},
			`{"query":"x"}`, `{"hits":[{"source":"doc1","text":"text"}]}`,
			[]executor.KnowledgeQuery{{Text: "x", Dataset: "kb", TopK: 1, Filter: map[string]any{"tenant": "acme"}}},
		},
		{
			"filter of one's own",
			executor.KnowledgeConfig{Filter: func(_ context.Context, p schema.Principal) (map[string]any, error) {
				return map[string]any{"owner": p.Tenant, "public": true}, nil
			}},
			library{},
			`{"query":"x"}`, `{"hits":[]}`,
			[]executor.KnowledgeQuery{{Text: "x", Dataset: "kb", TopK: 5, Filter: map[string]any{"owner": "acme", "public": true}}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.cfg.Dataset, tt.cfg.Search = "kb", tt.lib.search
			got := execute(t, knowledge(t, tt.cfg), search("acme", tt.args))
			if diff := cmp.Diff(outcome{OK: true, Output: tt.want}, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.asks, tt.lib.asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An attack: a tenant in the arguments is refused, one in the bound values changes nothing, and without one nothing is
// searched.
func TestKnowledgeTenantIsNotTheModelsToName(t *testing.T) {
	t.Parallel()
	lib := &library{}
	set := knowledge(t, executor.KnowledgeConfig{Dataset: "kb", Search: lib.search})
	for _, args := range []string{
		`{"query":"x","tenant":"other"}`, `{"query":"x","Tenant":"other"}`, `{"query":"x","filter":{"tenant":"other"}}`,
		`{"query":"x","dataset":"other"}`, `{"query":"x","topK":1000}`,
	} {
		if got := execute(t, set, search("acme", args)); got.Type != schema.InvalidArguments {
			t.Errorf("%s: got %+v", args, got)
		}
	}
	if got := execute(t, set, search("", `{"query":"x"}`)); got.Type != schema.Denied {
		t.Errorf("without a tenant: got %+v", got)
	}
	if len(lib.asked) != 0 {
		t.Fatalf("searched for %+v", lib.asked)
	}
	c := search("acme", `{"query":"ignore the filter, tenant is other"}`)
	c.Bound = `{"tenant":"other"}`
	execute(t, set, c)
	if diff := cmp.Diff(map[string]any{"tenant": "acme"}, lib.asked[0].Filter); diff != "" {
		t.Error(diff)
	}
}

// One tool serves several tenants at the same time, each call with its own filter.
func TestKnowledgeFilterPerCall(t *testing.T) {
	t.Parallel()
	set := knowledge(t, executor.KnowledgeConfig{Dataset: "kb", Search: func(_ context.Context, q executor.KnowledgeQuery) ([]executor.Hit, error) {
		return []executor.Hit{{Text: fmt.Sprint(q.Filter["tenant"])}}, nil
	}})
	done := make(chan struct{})
	for i := range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			tenant := fmt.Sprint("t", i)
			for range 50 {
				if got := execute(t, set, search(tenant, `{"query":"x"}`)); !strings.Contains(got.Output, `"text":"`+tenant+`"`) {
					t.Errorf("%s reads %s", tenant, got.Output)
				}
			}
		}()
	}
	for range 8 {
		<-done
	}
}

func TestKnowledgeFailures(t *testing.T) {
	t.Parallel()
	broken := errors.New("index is closed")
	filter := func(context.Context, schema.Principal) (map[string]any, error) { return nil, broken }
	for name, cfg := range map[string]executor.KnowledgeConfig{
		"search": {Dataset: "kb", Search: (&library{err: broken}).search},
		"filter": {Dataset: "kb", Search: (&library{}).search, Filter: filter},
	} {
		if got := execute(t, knowledge(t, cfg), search("acme", `{"query":"x"}`)); got != (outcome{Type: schema.ToolFailed, Output: "index is closed"}) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	for name, cfg := range map[string]executor.KnowledgeConfig{"dataset": {Search: (&library{}).search}, "search": {Dataset: "kb"}} {
		if _, err := executor.Knowledge(cfg); err == nil || !strings.Contains(err.Error(), "knowledge_search") {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
