package playback_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/jetcrew/jetcrew/cmd/internal/playback"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/loop/model/replay"
	"github.com/jetcrew/jetcrew/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const conversation = `{"id":"a","tools":[{"name":"clock","description":"Tells the time.","parameters":{"type":"object"}}],"messages":[
{"role":"system","content":"Be brief."},
{"role":"user","content":"Time?"},{"role":"user","content":"Twice."},
{"role":"assistant","content":"Looking.","tool_calls":[{"id":"c","type":"function","function":{"name":"clock","arguments":"{\"zone\": 1}"}},{"id":"c","type":"function","function":{"name":"clock","arguments":""}}]},
{"role":"tool","tool_call_id":"c","content":"12:00"},{"role":"tool","tool_call_id":"c","content":"13:00"},
{"role":"user","content":"Again."},
{"role":"assistant","content":"","tool_calls":[{"id":"d","type":"function","function":{"name":"clock","arguments":"{}"}}]},
{"role":"tool","tool_call_id":"d","content":"14:00"},
{"role":"assistant","content":"It is late."},
{"role":"user","content":"Bye."}]}`

func load(t *testing.T, text string) *replay.Transcript {
	t.Helper()
	list, err := replay.Load(strings.NewReader(strings.ReplaceAll(text, "\n", "")))
	if err != nil || len(list) != 1 {
		t.Fatalf("%d transcripts, %v", len(list), err)
	}
	return &list[0]
}

// fleet is a bus whose tools answer from t, but for the outputs that changed names by turn and index.
func fleet(t *replay.Transcript, changed map[[2]int]string) *looptest.Bus {
	b := looptest.NewBus()
	for _, d := range t.ToolDefs() {
		d.Queue = "mock"
		b.Tool(d, func(_ context.Context, c *schema.Call) (string, error) {
			if out, ok := changed[[2]int{c.Turn, c.Index}]; ok {
				return out, nil
			}
			out, ok := t.Output(c.Turn, c.Index)
			if !ok {
				return "", errors.New("nothing recorded")
			}
			return out, nil
		})
	}
	return b
}

// anybody may call the recorded tools.
var anybody = schema.Principal{ID: "tester", Scopes: []string{"tool:*"}}

func play(t *testing.T, p playback.Player, tr *replay.Transcript) *playback.Outcome {
	t.Helper()
	p.Queue = "mock"
	if p.Model == nil {
		p.Model = replay.New(*tr)
	}
	o, err := p.Play(t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestPlayAsRecorded(t *testing.T) {
	t.Parallel()
	tr := load(t, conversation)
	o := play(t, playback.Player{Principal: anybody, Bus: fleet(tr, nil)}, tr)
	if len(o.Differences) > 0 || o.Turns != 3 || o.Calls != 3 {
		t.Errorf("%+v", o)
	}
	// What was recorded of the replay is the transcript again, but for labels and arguments in their one form.
	if d := cmp.Diff(tr.Exchanges(), o.Recorded.Exchanges()); d != "" {
		t.Error(d)
	}
	if got := o.Recorded.Calls(1)[0].Args; got != `{"zone": 1}` {
		t.Errorf("recorded arguments %s, want them as the model wrote them", got)
	}
	again := play(t, playback.Player{Principal: anybody, Bus: fleet(&o.Recorded, nil)}, &o.Recorded)
	if len(again.Differences) > 0 {
		t.Errorf("the recording replays otherwise: %+v", again.Differences)
	}
}

func TestPlaySmallTranscripts(t *testing.T) {
	t.Parallel()
	f, err := os.Open(filepath.Join("..", "..", "orchestrator", "testdata", "small.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := replay.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if list[i].ID == "failures" {
			continue // its failing tool wants a mock that knows recorded errors
		}
		if o := play(t, playback.Player{Principal: anybody, Bus: fleet(&list[i], nil)}, &list[i]); len(o.Differences) > 0 {
			t.Errorf("%s: %+v", list[i].ID, o.Differences)
		}
	}
}

func TestPlayFindsDifferences(t *testing.T) {
	t.Parallel()
	tr := load(t, conversation)
	output := func(turn, index int, want, got string) playback.Difference {
		return playback.Difference{Turn: turn, Index: index, Tool: "clock", What: "output", Want: want, Got: got}
	}
	for name, c := range map[string]struct {
		changed map[[2]int]string
		model   func(*replay.Transcript) loop.Model
		want    []playback.Difference
	}{
		"outputs": {
			changed: map[[2]int]string{{1, 1}: "13:01", {2, 0}: ""},
			want:    []playback.Difference{output(1, 1, "13:00", "13:01"), output(2, 0, "14:00", "")},
		},
		"swapped": {
			changed: map[[2]int]string{{1, 0}: "13:00", {1, 1}: "12:00"},
			want:    []playback.Difference{output(1, 0, "12:00", "13:00"), output(1, 1, "13:00", "12:00")},
		},
		"model says something else": {
			model: func(tr *replay.Transcript) loop.Model {
				other := load(t, strings.Replace(conversation, "It is late.", "It is early.", 1))
				return replay.New(*other)
			},
			want: []playback.Difference{{Turn: 3, Index: -1, What: "text of the assistant", Want: "It is late.", Got: "It is early."}},
		},
		"model calls with other arguments": {
			model: func(tr *replay.Transcript) loop.Model {
				return replay.New(*load(t, strings.Replace(conversation, `\"zone\": 1`, `\"zone\":2`, 1)))
			},
			want: []playback.Difference{{Turn: 1, Index: 0, Tool: "clock", What: "arguments", Want: `{"zone":1}`, Got: `{"zone":2}`}},
		},
		"model ends early": {
			model: func(*replay.Transcript) loop.Model { return refusing{} },
			want: []playback.Difference{
				{Turn: 1, Index: -1, What: "the run ended early", Want: "another turn"},
				{Turn: 0, Index: -1, What: "kind of message", Want: "assistant", Got: "user"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := playback.Player{Principal: anybody, Bus: fleet(tr, c.changed)}
			if c.model != nil {
				p.Model = c.model(tr)
			}
			got := play(t, p, tr).Differences
			for i := range got {
				if got[i].What == "the run ended early" {
					got[i].Got = "" // the loop's words
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// refusing is a model that answers nothing.
type refusing struct{}

func (refusing) Generate(context.Context, *model.Request) (*model.Response, error) {
	return nil, &model.Error{Kind: model.Auth, Message: "no"}
}

func TestPlayWithoutABus(t *testing.T) {
	t.Parallel()
	tr := load(t, conversation)
	b := fleet(tr, nil)
	b.Broken = func(*schema.Call) error { return errors.New("the wire is cut") }
	p := playback.Player{Principal: anybody, Bus: b, Model: replay.New(*tr), Queue: "mock"}
	if _, err := p.Play(t.Context(), tr); err == nil || !strings.Contains(err.Error(), "the wire is cut") {
		t.Errorf("error %v", err)
	}
}
