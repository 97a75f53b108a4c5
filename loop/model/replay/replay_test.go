package replay

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func small(t *testing.T) []Transcript {
	t.Helper()
	return load(t, filepath.Join("testdata", "small.jsonl"))
}

func load(t *testing.T, path string) []Transcript {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := Load(f)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestParts(t *testing.T) {
	t.Parallel()
	list := small(t)
	one, two := &list[0], &list[1]
	wantOne := []Exchange{
		{Says: []string{"Hello"}, First: 1, Last: 1},
		{Says: []string{"a.txt", "and b.txt"}, First: 2, Last: 4},
		{Says: []string{"Thanks"}, First: 5, Last: 4},
	}
	if d := cmp.Diff(wantOne, one.Exchanges()); d != "" {
		t.Errorf("exchanges (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]Exchange{{Says: []string{"Ping"}, First: 1, Last: 1}}, two.Exchanges()); d != "" {
		t.Errorf("exchanges of a transcript that ends with an output (-want +got):\n%s", d)
	}
	if one.System() != "Be brief." || one.Turns() != 4 || two.Turns() != 1 {
		t.Errorf("system %q, turns %d and %d", one.System(), one.Turns(), two.Turns())
	}
	says := [][]string{nil, {"Hello"}, {"a.txt", "and b.txt"}, nil, nil, {"Thanks"}, nil}
	for n, want := range says {
		if d := cmp.Diff(want, one.Says(n)); d != "" {
			t.Errorf("says(%d) (-want +got):\n%s", n, d)
		}
	}
	defs := one.ToolDefs()
	if defs[0].Digest == "" || !strings.HasPrefix(string(defs[0].Parameters), `{"type":"object"`) || defs[1].Parameters != "" {
		t.Errorf("tools %+v", defs)
	}
}

func TestOutputsByPosition(t *testing.T) {
	t.Parallel()
	one := &small(t)[0]
	cases := []struct {
		turn, index int
		want        string
		ok          bool
	}{
		{2, 0, "A <1>", true},
		{2, 1, "", true},
		{2, 2, "", false},
		{3, 0, "pong", true},
		{1, 0, "", false},
		{4, 0, "", false},
		{5, 0, "", false},
		{0, 0, "", false},
		{2, -1, "", false},
	}
	for _, c := range cases {
		if got, ok := one.Output(c.turn, c.index); got != c.want || ok != c.ok {
			t.Errorf("output(%d, %d): got %q, %v", c.turn, c.index, got, ok)
		}
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	m := New(small(t)...)
	ask := func(agent string, turn int) (*model.Response, error) {
		return m.Generate(context.Background(), &model.Request{Agent: agent, Turn: turn})
	}
	got, err := ask("files-1", 3)
	want := &model.Response{Text: "Once more.", Calls: []schema.RawCall{{ID: "call_0", Name: "ping"}}, Finish: schema.FinishCalls, Model: "replay/files-1"}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("A01 turn 3: %v (-want +got):\n%s", err, d)
	}
	if got, err := ask("files-2", 1); err != nil || got.Calls[0].Args != `{"n":1.50}` {
		t.Errorf("arguments as an object: %+v, %v", got, err)
	}
	if _, err := ask("files-1", 5); !errors.Is(err, model.ErrEnd) {
		t.Errorf("past the end: %v", err)
	}
	if _, err := ask("files-1", 0); !errors.Is(err, model.ErrEnd) {
		t.Errorf("turn 0: %v", err)
	}
	if _, err := ask("nobody", 1); err == nil || errors.Is(err, model.ErrEnd) {
		t.Errorf("unknown id: %v", err)
	}
	var shown string
	single := New(small(t)[0])
	if _, err := single.Generate(context.Background(), &model.Request{Agent: "any", Turn: 4, Delta: func(d model.Delta) { shown += d.Text }}); err != nil || shown != "Done." {
		t.Errorf("delta %q, %v", shown, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := single.Generate(ctx, &model.Request{Turn: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestLoadErrorsNameTheLine(t *testing.T) {
	t.Parallel()
	good := `{"id":"a","messages":[]}` + "\n"
	cases := []struct{ name, in, want string }{
		{"syntax", good + "\n{\"id\":}\n", "line 3: byte 7"},
		{"cut", good + `{"id":"b"`, "line 2"},
		{"no id", good + `{"messages":[]}`, "line 2: id is missing"},
		{"id twice", good + good, "stands in line 1"},
		{"role", `{"id":"a","messages":[{"role":"robot"}]}`, `line 1: messages[0]: role "robot"`},
		{"tool without name", `{"id":"a","tools":[{}]}`, "tools[0]"},
		{"output without call", `{"id":"a","messages":[{"role":"assistant","content":"x"},{"role":"tool"}]}`, "messages[1]"},
		{"wrong type", `{"id":"a","messages":[{"role":"user","content":5}]}`, "line 1: messages.content cannot be of the JSON type number"},
		{"no object", `[]`, "line 1: a transcript cannot be of the JSON type array"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := Load(strings.NewReader(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestWriteAndLoad(t *testing.T) {
	t.Parallel()
	list := small(t)
	var first, second bytes.Buffer
	if err := Write(&first, list...); err != nil {
		t.Fatal(err)
	}
	again, err := Load(bytes.NewReader(first.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(&second, again...); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(first.String(), second.String()); d != "" {
		t.Errorf("written twice (-first +second):\n%s", d)
	}
	for i := range list {
		if d := cmp.Diff(list[i].ToolDefs(), again[i].ToolDefs()); d != "" {
			t.Errorf("tools (-read +written):\n%s", d)
		}
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	memory := []schema.Message{
		{Role: schema.RoleSystem, Text: "Be brief."},
		{Role: schema.RoleUser, Text: "a\xff"},
		{Role: schema.RoleAssistant, Calls: []schema.MessageCall{{Label: "c1", Name: "ping", Args: "{}"}, {Label: "c2", Name: "ping", Args: `{"n":1}`}}},
		{Role: schema.RoleTool, Label: "c1", Name: "ping", Text: "1"},
		{Role: schema.RoleTool, Label: "c2", Name: "ping", Text: "TOOL_ERROR: {}", Error: true},
		{Role: schema.RoleAssistant, Text: "Done."},
	}
	var b bytes.Buffer
	if err := Write(&b, Record("r1", []schema.Tool{{Name: "ping"}, {Name: "x", Parameters: `{"type":"object"}`}}, memory)); err != nil {
		t.Fatal(err)
	}
	list, err := Load(&b)
	if err != nil {
		t.Fatal(err)
	}
	r := &list[0]
	out, ok := r.Output(1, 1)
	if r.Turns() != 2 || !ok || out != "TOOL_ERROR: {}" || r.Calls(1)[1].Args != `{"n":1}` || r.Says(1)[0] != "a\uFFFD" || r.ToolDefs()[0].Parameters != `{"type":"object"}` {
		t.Errorf("recorded %+v", r)
	}
}

// TestData reads the recordings of the project, which are not part of the repository.
func TestData(t *testing.T) {
	t.Parallel()
	cases := []struct {
		file                           string
		transcripts, calls, says, ends int
	}{
		{"airline.jsonl", 100, 572, 757, 76},
		{"parallel.jsonl", 216, 579, 216, 0},
	}
	for _, c := range cases {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(dataDir(), c.file)
			if _, err := os.Stat(path); err != nil {
				t.Skipf("no recordings: %v; set JETCREW_DATA to their directory", err)
			}
			calls, says, ends := 0, 0, 0
			list := load(t, path)
			m := New(list...)
			for i := range list {
				k, s, e := play(t, m, &list[i])
				calls, says, ends = calls+k, says+s, ends+e
			}
			if len(list) != c.transcripts || calls != c.calls || says != c.says || ends != c.ends {
				t.Errorf("%d transcripts, %d calls, %d user messages, %d without an answer", len(list), calls, says, ends)
			}
		})
	}
}

// play plays a transcript as a driver does and counts.
func play(t *testing.T, m *Model, r *Transcript) (calls, says, ends int) {
	t.Helper()
	for _, e := range r.Exchanges() {
		says += len(e.Says)
		if e.Last < e.First {
			ends++
		}
		for n := e.First; n <= e.Last; n++ {
			a, err := m.Generate(context.Background(), &model.Request{Agent: r.ID, Turn: n})
			if err != nil {
				t.Fatal(err)
			}
			for i := range a.Calls {
				if _, ok := r.Output(n, i); !ok {
					t.Errorf("%s: call %d.%d has no output", r.ID, n, i)
				}
				calls++
			}
		}
	}
	if _, err := m.Generate(context.Background(), &model.Request{Agent: r.ID, Turn: r.Turns() + 1}); !errors.Is(err, model.ErrEnd) {
		t.Errorf("%s: past the end: %v", r.ID, err)
	}
	return calls, says, ends
}

// dataDir is JETCREW_DATA, by default ../shared/data beside the module.
func dataDir() string {
	if dir := os.Getenv("JETCREW_DATA"); dir != "" {
		return dir
	}
	return filepath.Join("..", "..", "..", "..", "shared", "data")
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"id":"a","tools":[{"name":"x"}],"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":{}}}]},{"role":"tool","content":null}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := Load(bytes.NewReader(data))
		if err != nil {
			return
		}
		for i := range list {
			list[i].Exchanges()
			list[i].ToolDefs()
			list[i].Output(1, 0)
		}
		if err := Write(&bytes.Buffer{}, list...); err != nil {
			t.Errorf("what was read cannot be written: %v", err)
		}
	})
}
