package agentfile

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/schema"
)

var update = flag.Bool("update", false, "rewrite the expected errors in testdata")

// head is the least a file says.
const head = "version: jetcrew/v1\nid: a\nmodel: openai/gpt-4o\n"

func parseOK(t *testing.T, text string) schema.AgentSpec {
	t.Helper()
	spec, err := Parse("agent.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestParseFull(t *testing.T) {
	t.Parallel()
	got := parseOK(t, `
version: jetcrew/v1
id: code-reviewer
name: " The Reviewer "
model:
  provider: openai
  model: org/gpt-4o
  options:
    temperature: 0.10
    seed: 9007199254740993
    stop: ["<end>", "é"]
    response_format: {type: json_object, "1": [null, true, -1.5e3]}
    parallelToolCalls: true
    maxParallelToolCalls: 4
    toolCallTimeoutMillis: 60000
    contextWindow: 200000
  price: {input: 2.50, output: 10}
instructions: |
  Look before
  you answer.
tools: [read_file, "github_*", shell/bash]
limits:
  maxSteps: 7
  wallClock: 1m30s
  maxTokens: 100000
  maxCost: 0.5
session:
  compaction:
    strategy: window
    trigger: {contextRatio: 0.75, maxTurns: 40}
    preserve: 6
`)
	want := schema.AgentSpec{
		ID: "code-reviewer", Name: "The Reviewer",
		Model: schema.ModelSpec{Provider: "openai", Name: "org/gpt-4o", Options: `{"temperature":0.10,"seed":9007199254740993,` +
			`"stop":["<end>","é"],"response_format":{"type":"json_object","1":[null,true,-1.5e3]}}`, ContextWindow: 200_000, Price: schema.Price{Input: 2.5, Output: 10}},
		Instructions: "Look before\nyou answer.\n",
		Tools:        []string{"read_file", "github_*", "shell/bash"},
		Limits:       schema.Limits{MaxSteps: 7, WallClockMS: 90_000, MaxTokens: 100_000, MaxCost: 0.5},
		Parallel:     schema.Parallel{Calls: true, Max: 4, TimeoutMS: 60_000},
		Compaction:   &schema.Compaction{Strategy: schema.CompactWindow, ContextRatio: 0.75, MaxTurns: 40, Preserve: 6},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestParseDefaults(t *testing.T) {
	t.Parallel()
	want := schema.AgentSpec{ID: "a", Model: schema.ModelSpec{Provider: "openai", Name: "gpt-4o"}, Limits: schema.DefaultLimits()}
	for name, text := range map[string]string{
		"least":         head,
		"null":          head + "name:\ninstructions: null\ntools: ~\nlimits:\nsession:\n",
		"no compaction": head + "session: {compaction: null}\n",
		"memory":        head + "session: {memory: {enabled: true, scope: run, store: journal}}\n",
		"no memory":     head + "session: {memory: {enabled: null, scope: ~}}\n",
		"empty parts":   head + "tools: []\nlimits: {}\n",
		"byte mark":     "\ufeff" + head,
		"windows lines": strings.ReplaceAll(head, "\n", "\r\n"),
		"empty options": "version: jetcrew/v1\nid: a\nmodel: {provider: openai, model: gpt-4o, options: {}}\n",
		"no options":    "version: jetcrew/v1\nid: a\nmodel: {provider: openai, model: gpt-4o, options: null}\n",
		"null settings": "version: jetcrew/v1\nid: a\nmodel: {provider: openai, model: gpt-4o, options: {parallelToolCalls: null, maxParallelToolCalls: null, toolCallTimeoutMillis: null}}\n",
		"below one":     "version: jetcrew/v1\nid: a\nmodel: {provider: openai, model: gpt-4o, options: {maxParallelToolCalls: 0, toolCallTimeoutMillis: -5}}\n",
	} {
		if diff := cmp.Diff(want, parseOK(t, text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestParseSpellings: both spellings of each field are one setting (section 8.1 of the seed tools-and-registry).
func TestParseSpellings(t *testing.T) {
	t.Parallel()
	camel := parseOK(t, `
version: jetcrew/v1
id: a
model: {provider: anthropic, model: m, options: {parallelToolCalls: true, maxParallelToolCalls: 2, toolCallTimeoutMillis: 3, contextWindow: 9000}, price: {output: 1}}
limits: {maxSteps: 0, wallClockMillis: 0, maxTokens: 5, maxCost: 2}
session: {compaction: {strategy: summary, trigger: {contextRatio: 1, maxTurns: 3}}}
`)
	snake := parseOK(t, `
version: jetcrew/v1
id: a
model: {provider: anthropic, model: m, options: {parallel_tool_calls: true, max_parallel_tool_calls: 2, tool_call_timeout_millis: 3, context_window: 9000}, price: {output: 1.0}}
limits: {max_steps: 0, wall_clock: 0s, max_tokens: 5, max_cost: 2}
session: {compaction: {strategy: summary, trigger: {context_ratio: 1.0, max_turns: 3}}}
`)
	if diff := cmp.Diff(camel, snake); diff != "" {
		t.Errorf("camelCase and snake_case differ:\n%s", diff)
	}
	if want := (schema.Limits{MaxTokens: 5, MaxCost: 2}); camel.Limits != want {
		t.Errorf("limits = %+v, want %+v", camel.Limits, want)
	}
}

func TestParseCompactionDefaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]schema.Compaction{
		"{strategy: window}":                                      {Strategy: "window", ContextRatio: 0.8, Preserve: 4},
		"{strategy: summary, trigger: {maxTurns: 3}}":             {Strategy: "summary", MaxTurns: 3, Preserve: 2},
		"{strategy: summary, trigger: {contextRatio: 0.5}}":       {Strategy: "summary", ContextRatio: 0.5, Preserve: 4},
		"{strategy: summary, trigger: {}, preserve: null}":        {Strategy: "summary", ContextRatio: 0.8, Preserve: 4},
		"{strategy: window, trigger: {maxTurns: 9}, preserve: 8}": {Strategy: "window", MaxTurns: 9, Preserve: 8},
	} {
		got := parseOK(t, head+"session: {compaction: "+text+"}\n").Compaction
		if diff := cmp.Diff(&want, got); diff != "" || got.Check() != nil {
			t.Errorf("%s: %v, %s", text, got.Check(), diff)
		}
	}
}

func TestParseAliases(t *testing.T) {
	t.Parallel()
	got := parseOK(t, "version: jetcrew/v1\nid: &n agent\nname: *n\nmodel: {provider: openai, model: m, options: {a: &x [1], b: *x}}\n")
	if got.Name != "agent" || got.Model.Options != `{"a":[1],"b":[1]}` {
		t.Errorf("spec = %+v", got)
	}
}

// TestProblems compares errors, word by word and with their excerpts, with testdata/<name>.txt.
func TestProblems(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			_, err := Load(file)
			var problems *Error
			if !errors.As(err, &problems) {
				t.Fatalf("err = %v, want an *Error", err)
			}
			want := strings.TrimSuffix(file, ".yaml") + ".txt"
			got := strings.ReplaceAll(err.Error(), filepath.ToSlash(file), filepath.Base(file)) + "\n"
			if *update {
				if err := os.WriteFile(want, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(text), got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			compareCodes(t, strings.TrimSuffix(file, ".yaml")+".codes", problems)
		})
	}
}

func TestErrorsNeverShowSecrets(t *testing.T) {
	t.Parallel()
	const planted = "sk-proj-PLANTEDplanted0123456789"
	for _, text := range []string{
		head + "apiKey: " + planted + "\n",
		head + "api_key: \"" + planted + "\n",
		head + "  token : " + planted + "\n",
		head + "limits: {maxSteps: -1, authToken: " + planted + "}\n",
		head + "limits: {authToken: " + planted + ", maxSteps: -1}\n",
		head + "name: [" + planted + "]\n",
		head + "tools: [" + planted + ", " + planted + "]\n",
		head + planted + ": 1\n",
		"version: " + planted + "\nid: a\nmodel: openai/x\n",
		"version: jetcrew/v1\nid: a\nmodel: " + planted + "\n",
		"version: jetcrew/v1\nid: a\nmodel: {provider: " + planted + ", model: x, options: {headers: {Authorization: Bearer " + planted + "}}}\n",
		head + "Authorization: Bearer PLANTEDplanted0123\n",
		head + "x: {password: " + strings.Repeat(" ", 150) + "PLANTEDplanted, a: b, a: b}\n",
	} {
		_, err := Parse("agent.yaml", []byte(text))
		if err == nil {
			t.Errorf("accepted:\n%s", text)
		} else if strings.Contains(err.Error(), "PLANTED") {
			t.Errorf("the error shows the secret:\n%v", err)
		}
	}
}

func TestSecretNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"apiKey": true, "api_key": true, "API-KEY": true, "x-api-key": true, "openaiApiKey": true, "token": true,
		"accessToken": true, "authorization": true, "Authorization": true, "client_secret": true, "password": true,
		"maxTokens": false, "max_completion_tokens": false, "prompt_cache_key": false, "stop": false, "budget_tokens": false,
		"add_generation_prompt": false,
	} {
		if got := secretName(name); got != want {
			t.Errorf("secretName(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestParseHostileInput(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"deep flow":        strings.Repeat("[", 15_000),
		"deep maps":        strings.Repeat("{a: ", 8_000),
		"deep, many lines": strings.Repeat("[\n", 8_000),
		"dashes":           strings.Repeat("- ", 8_000) + "x",
		"anchors":          strings.Repeat("&a ", 8_000) + "x",
		"quotes":           strings.Repeat(`"`, 15_000),
		"too many":         strings.Repeat("a: b\n", 8_000),
		"too large":        head + strings.Repeat("# padding\n", 20_000),
		"not UTF-8":        "version: \xff",
		"self":             head + "limits: &l {a: *l}\n",
		"ring":             head + "tools: &a [*b]\nlimits: &b [*a]\n",
		"nothing":          "",
		"only a comment":   "# nothing\n",
		"only a scalar":    "42",
		"bomb":             bomb(),
	} {
		if _, err := Parse("agent.yaml", []byte(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// bomb is a small file of aliases of aliases, ten to the ninth when put in.
func bomb() string {
	var b strings.Builder
	b.WriteString("version: jetcrew/v1\nid: a\nmodel:\n  provider: openai\n  model: m\n  options:\n    x0: &x0 [1,1,1,1,1,1,1,1,1,1]\n")
	for i := range 9 {
		fmt.Fprintf(&b, "    x%d: &x%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*x%d,", i), 10), ","))
	}
	return b.String()
}

func TestLoadMissingFile(t *testing.T) {
	t.Parallel()
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("err = %v, want one that matches fs.ErrNotExist", err)
	}
}

func TestTemplateParses(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"my-agent", "1", "true", "null"} {
		got, err := Parse("agent.yaml", Template(id))
		if err != nil {
			t.Fatal(err)
		}
		if c := got.Compaction; c == nil || c.Strategy != schema.CompactSummary || c.Check() != nil {
			t.Errorf("compaction = %+v", c)
		}
		if got.ID != id || !got.Parallel.Calls || got.Limits != schema.DefaultLimits() || len(got.Tools) != 3 || got.Model.Options != `{"temperature":0}` {
			t.Errorf("spec = %+v", got)
		}
	}
}

// uncommented is the template with all that it shows in comments.
func uncommented(t *testing.T) []byte {
	t.Helper()
	text := regexp.MustCompile(`(?m)^( *)# ( *(?:- |[A-Za-z]+:(?: |$)).*)$`).ReplaceAllString(string(Template("my-agent")), "$1$2")
	if strings.Count(text, "#") > strings.Count(string(Template("")), "#")-20 {
		t.Fatalf("the template shows hardly anything:\n%s", text)
	}
	return []byte(text)
}

// TestTemplateShowsWhatParses: whoever removes the comment signs has a file that is read, without warnings.
func TestTemplateShowsWhatParses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string][]byte{"as it is": Template("my-agent"), "all of it": uncommented(t)} {
		f, err := Read(name, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range f.Warnings {
			t.Errorf("%s: line %d: %s", name, w.Line, w.Message)
		}
		if g := f.Agent.Governance; name == "all of it" && (g == nil || len(g.Tools) != 1 || g.Policy == nil || len(g.Policy.Rules) != 2 ||
			len(g.Filters) != 1 || g.Environment == "" || len(g.Authority) != 3 || len(g.AbortOn) != 1 || len(g.Subagents) != 1 || g.Handoff == nil) {
			t.Errorf("governance = %+v", g)
		}
	}
}

// TestDocumentedSession reads the YAML of docs/memory.md as the rest of an agent file.
func TestDocumentedSession(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/memory.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(doc), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	got := parseOK(t, "version: jetcrew/v1\nid: a\n"+text)
	want := &schema.Compaction{Strategy: schema.CompactSummary, ContextRatio: defaultRatio, MaxTurns: 60, Preserve: 4}
	if diff := cmp.Diff(want, got.Compaction); diff != "" || got.Model.ContextWindow != schema.DefaultContextWindow {
		t.Errorf("window %d, %s", got.Model.ContextWindow, diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(Template("a")))
	f.Add([]byte(bomb()))
	for _, pattern := range []string{"testdata/*.yaml", "testdata/good/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			if data, err := os.ReadFile(file); err == nil {
				f.Add(data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, err := Parse("f", data)
		if err != nil {
			_ = err.Error()
			return
		}
		if spec.ID == "" || spec.Model.Provider == "" || spec.Model.Name == "" {
			t.Errorf("accepted without what is required: %+v", spec)
		}
		if _, err := schema.Encode(&schema.Open{Agent: &spec}); err != nil {
			t.Errorf("a spec that cannot be written: %v", err)
		}
	})
}
