package executor

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/jetcrew/jetcrew/schema"
)

// KnowledgeConfig sets up a retrieval tool. The model sees and sets only the query; all else is fixed here, or computed
// for each call from the principal that it came with.
type KnowledgeConfig struct {
	Name        string // of the tool; default knowledge_search
	Description string // for the model; default: that it searches the knowledge base
	Dataset     string // that is searched; required
	TopK        int    // most hits of one search; default 5, also for less than 1
	// Search finds at most TopK hits, the best first. It must keep to the query's filter: nobody behind it does. Required.
	Search func(ctx context.Context, query KnowledgeQuery) ([]Hit, error)
	// Filter gives what a principal may see. Default: its tenant, under the key tenant; a principal without one is denied.
	Filter func(ctx context.Context, principal schema.Principal) (map[string]any, error)
}

// KnowledgeQuery is one search.
type KnowledgeQuery struct {
	Text    string         // never blank
	Dataset string         // of the configuration
	TopK    int            // at least 1
	Filter  map[string]any // of the call's principal
}

// Hit is something that a search found.
type Hit struct {
	Source string  `json:"source"`          // where it stands, such as the name of a document; default: the dataset
	Text   string  `json:"text"`            // that fits the query
	Score  float64 `json:"score,omitempty"` // how well; 0: not said
}

const (
	knowledgeName = "knowledge_search"
	knowledgeText = "Searches the knowledge base for passages that help to answer a question, and says where each of them stands."
	knowledgeTopK = 5
)

// Knowledge returns the retrieval tool of a configuration; it is idempotent and only reads. Its output is a JSON object
// with the list hits, each with its source; for a blank query it is empty.
func Knowledge(cfg KnowledgeConfig, opts ...Option) (Tool, error) {
	cfg.Name, cfg.Description = cmp.Or(cfg.Name, knowledgeName), cmp.Or(cfg.Description, knowledgeText)
	if cfg.TopK < 1 {
		cfg.TopK = knowledgeTopK
	}
	if cfg.Filter == nil {
		cfg.Filter = tenantOnly
	}
	switch {
	case strings.TrimSpace(cfg.Dataset) == "":
		return Tool{}, fmt.Errorf("tool %q: no dataset; say which one it searches", cfg.Name)
	case cfg.Search == nil:
		return Tool{}, fmt.Errorf("tool %q: no function that searches", cfg.Name)
	}
	opts = append([]Option{Idempotent(), Effect(schema.EffectRead)}, opts...)
	return Func(cfg.Name, cfg.Description, cfg.search, opts...), nil
}

type knowledgeArgs struct {
	Query string `json:"query" jsonschema:"description=What to look for\\, in plain words"`
}

func (cfg KnowledgeConfig) search(ctx context.Context, args knowledgeArgs) (any, error) {
	text := strings.TrimSpace(args.Query)
	if text == "" {
		return "", nil
	}
	var principal schema.Principal
	if call := CallOf(ctx); call != nil {
		principal = call.Principal
	}
	filter, err := cfg.Filter(ctx, principal)
	if err != nil {
		return nil, err
	}
	hits, err := cfg.Search(ctx, KnowledgeQuery{Text: text, Dataset: cfg.Dataset, TopK: cfg.TopK, Filter: filter})
	if err != nil {
		return nil, err
	}
	found := make([]Hit, min(len(hits), cfg.TopK))
	for i := range found {
		found[i] = hits[i]
		found[i].Source = cmp.Or(found[i].Source, cfg.Dataset)
	}
	return map[string]any{"hits": found}, nil
}

func tenantOnly(_ context.Context, p schema.Principal) (map[string]any, error) {
	if p.Tenant == "" {
		return nil, denied("this search needs a tenant, and the run acts for none")
	}
	return map[string]any{"tenant": p.Tenant}, nil
}
