package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// wholeFile has every part of an agent file that others depend on.
const wholeFile = `{
"version": "jetcrew/v1", "id": "a", "name": "A", "model": {"provider": "openai", "model": "m", "price": {"input": 1, "output": 2}, "options": {"temperature": 0.5, "maxParallelToolCalls": 2}},
"instructions": {"system": "for ${shop}", "variables": {"shop": "Acme"}},
"tools": ["read_file", {"ref": "refund", "queue": "orders", "approval": "always", "once": true, "timeout": "5s", "bind": {"tenant": "${principal.tenant}", "n": [1, {"x": "y"}]}}],
"filters": [{"name": "small", "tools": ["orders/refund"], "when": "args.amount > 1000", "block": "too much"}, {"guide": "ask less"}],
"policy": {"presets": ["safe"], "default": "ask", "autonomy": "supervised", "expires": "48h",
  "rules": [{"name": "none", "tools": ["orders/*"], "effects": ["write"], "environments": ["staging"], "when": "tool == 'x'", "risk": "high", "deny": "never"}, {"risk": "low"}]},
"environment": "production", "authority": ["tool:*", "spend:1.5", "and", "until:2030-01-01T00:00:00Z"], "abortOn": ["refund"],
"subagents": [{"agent": "b", "name": "helper", "description": "helps", "policy": {"allowedTools": ["helper"], "maxDepth": 1, "timeout": "2m", "onError": "fallback", "fallback": "go on"}}],
"handoff": {"maxRetries": 1}, "limits": {"maxSteps": 5, "maxCost": 1, "wallClock": "1m"},
"session": {"compaction": {"strategy": "summary", "preserve": 4, "trigger": {"contextRatio": 0.5, "maxTurns": 20}}}
}`

// mutations calls f with a document for every value in it, put in its place: another one, or, in an object, nothing.
func mutations(t *testing.T, doc any, f func(where string, doc any)) {
	t.Helper()
	wrong := []any{nil, true, -1.0, 1e9, "", " ", "no such", "a,b\n", "tool:", "spend:much", "spend:-1", "[", "${x}", "a b(", []any{}, []any{"x", "x"}, []any{5.0}, map[string]any{}, map[string]any{"x": "y"}}
	var walk func(where string, v any, set func(any))
	walk = func(where string, v any, set func(any)) {
		for _, w := range wrong {
			set(w)
			text, err := json.Marshal(w)
			if err != nil {
				t.Fatal(err)
			}
			f(where+" = "+string(text), doc)
		}
		set(v)
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				delete(v, name)
				f(where+"."+name+" left out", doc)
				v[name+"x"] = value
				f(where+"."+name+" misspelt", doc)
				delete(v, name+"x")
				walk(where+"."+name, value, func(w any) { v[name] = w })
			}
		case []any:
			for i, value := range v {
				walk(fmt.Sprintf("%s[%d]", where, i), value, func(w any) { v[i] = w })
			}
			set(append(append([]any{}, v...), v...))
			f(where+" twice", doc)
			set(v)
		}
	}
	root := doc.(map[string]any)
	for name, value := range root {
		walk("$."+name, value, func(w any) { root[name] = w })
	}
}

// TestCheckSaysEverythingOnce: whatever is wrong in a file, no two findings are about one place. Of a condition CEL may find
// several things, each at its own.
func TestCheckSaysEverythingOnce(t *testing.T) {
	t.Parallel()
	var doc any
	if err := json.Unmarshal([]byte(wholeFile), &doc); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "agent.yaml")
	found := func(doc any) []finding {
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return checkFile(file)
	}
	if all := found(doc); len(all) > 0 {
		t.Fatalf("the file is wrong before anything is changed: %+v", all)
	}
	mutations(t, doc, func(where string, doc any) {
		said := map[string]finding{}
		for _, f := range found(doc) {
			place := fmt.Sprintf("%s %d:%d", f.Path, f.Line, f.Column)
			if other, twice := said[place]; twice {
				t.Errorf("%s: %s: %s %q, and %s %q", where, f.Path, other.Code, other.Message, f.Code, f.Message)
			}
			said[place] = f
		}
	})
}
