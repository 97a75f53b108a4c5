package rules_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/jetcrew/jetcrew/schema"
)

// TestExamplesOfTheDocument compiles every example of docs/policy.md.
func TestExamplesOfTheDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```yaml\n")[1:]
	if len(blocks) < 5 {
		t.Fatalf("only %d examples found", len(blocks))
	}
	for i, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		compile(t, governance(t, i, block))
	}
}

// governance reads an example. In files an action is a key of its own, whose value is the text.
func governance(t *testing.T, i int, text string) *schema.Governance {
	t.Helper()
	var file map[string]any
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatalf("example %d: %v", i, err)
	}
	spell(file["filters"], map[string]schema.Action{"allow": schema.ActionAllow, "block": schema.ActionDeny, "guide": schema.ActionGuide, "fallback": schema.ActionRedirect})
	if policy, ok := file["policy"].(map[string]any); ok {
		delete(policy, "expires")
		spell(policy["rules"], map[string]schema.Action{"allow": schema.ActionAllow, "deny": schema.ActionDeny, "ask": schema.ActionAsk})
	}
	data, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	g := &schema.Governance{}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(g); err != nil {
		t.Fatalf("example %d: %v", i, err)
	}
	return g
}

// spell writes the actions of rules as the wire has them.
func spell(rules any, actions map[string]schema.Action) {
	list, _ := rules.([]any)
	for _, r := range list {
		rule := r.(map[string]any)
		for key, action := range actions {
			why, ok := rule[key]
			if !ok {
				continue
			}
			delete(rule, key)
			rule["action"] = action
			if text, ok := why.(string); ok {
				rule["text"] = text
			}
		}
	}
}
