package agentfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestSchemaIsUpToDate compares docs/agent.schema.json with what the code says; -update writes it.
func TestSchemaIsUpToDate(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "docs", "agent.schema.json")
	if *update {
		if err := os.WriteFile(file, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), string(Schema())); diff != "" {
		t.Errorf("docs/agent.schema.json is not what the code says (-have +want); run go test ./loop/agentfile -run TestSchema -update:\n%s", diff)
	}
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(Schema())))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("agent.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("agent.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// check returns what the schema says of a file.
func check(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(value)
}

// TestSchemaTakesWhatTheReaderTakes: the template, all agent files of the repository and the texts of other tests.
func TestSchemaTakesWhatTheReaderTakes(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	files := map[string][]byte{"the template": Template("a"), "the template, all of it": uncommented(t)}
	for _, dir := range []string{filepath.Join("testdata", "good"), filepath.Join("..", "..", "examples"), filepath.Join("..", "..", "deploy")} {
		for _, file := range yamlFiles(t, dir) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), "version: "+Version) {
				files[file] = data
			}
		}
	}
	for _, text := range []string{
		"", "tools: []\n", "name:\ntools: ~\n", "tools: [{ref: a, once: null, bind: {x: [1, null]}}]\n", "instructions: {system: a}\n",
		"limits: {wallClock: 1m30.5s, maxSteps: 0}\n", "limits: {wall_clock_millis: 0}\n", "limits: {wallClock: 0s}\n",
		"limits: {maxCost: 0}\n",
		"session: {compaction: {strategy: window, trigger: {contextRatio: 1}}}\n", "policy: {rules: [{risk: low}, {deny: true}], expires: 90s}\n",
		"filters: [{block: x}, {allow: true}]\n", "subagents: [{agent: b, policy: {maxDepth: -1}}]\n", "abort_on: [x]\n",
	} {
		files[head+text] = []byte(head + text)
	}
	for name, data := range files {
		if _, err := Parse(name, data); err != nil {
			t.Errorf("%s: the reader refuses it: %v", name, err)
		}
		if err := check(t, s, data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func yamlFiles(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if ext := filepath.Ext(path); ext == ".yaml" || ext == ".yml" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestSchemaRefuses what can be seen without a program.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	for _, text := range []string{
		"id: a\nmodel: openai/gpt-4o\n",
		"version: jetcrew/v1\nid: two words\nmodel: openai/gpt-4o\n",
		"version: jetcrew/v1\nid: a\nmodel: gpt-4o\n",
		head + "modell: x\n",
		head + "tools: bash\n",
		head + "tools: [1]\n",
		head + "tools: [{ref: a, approval: sometimes}]\n",
		head + "tools: [{ref: a, timeout: soon}]\n",
		head + "tools: [{approval: ask}]\n",
		head + "filters: [{}]\n",
		head + "filters: [{block: x, allow: true}]\n",
		head + "filters: [{guide: true}]\n",
		head + "filters: [{tools: [], block: x}]\n",
		head + "policy: {rules: [{when: x}]}\n",
		head + "policy: {rules: [{effects: [writa], deny: true}]}\n",
		head + "policy: {autonomy: full}\n",
		head + "subagents: [{name: x}]\n",
		head + "subagents: [{agent: b, policy: {maxDepth: 0}}]\n",
		head + "limits: {maxSteps: 1, max_steps: 1}\n",
		head + "limits: {maxSteps: -1}\n",
		head + "limits: {maxCost: -0.5}\n",
		"version: jetcrew/v1\nid: a\nmodel: {provider: openai, model: b, price: {input: cheap}}\n",
		head + "session: {compaction: {strategy: window, trigger: {contextRatio: 1.5}}}\n",
	} {
		if _, err := Parse("f", []byte(text)); err == nil && !strings.Contains(text, "sometimes") {
			t.Errorf("the reader takes it:\n%s", text)
		}
		if err := check(t, s, []byte(text)); err == nil {
			t.Errorf("the schema takes it:\n%s", text)
		}
	}
}
