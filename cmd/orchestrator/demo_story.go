package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/loop/model/replay"
	"github.com/jetcrew/jetcrew/schema"
)

// demoTranscript is what the demo's model says. A recording cannot know the directory it is played in: FILE in it
// stands for a file that is there, and a mark like {{first 1.2}} in the answer for the first line of a call's output,
// {{lines 1.2}} for how many lines it has.
//
//go:embed demo.jsonl
var demoTranscript []byte

// place names a call.
type place struct{ turn, index int }

func (p place) String() string { return fmt.Sprintf("%d.%d", p.turn, p.index) }

// story is the demo's agent: a recorded model, fitted to a directory.
type story struct {
	*replay.Model
	spec   schema.AgentSpec
	task   string
	victim place // the idempotent call in whose middle a worker is killed
}

func newStory(root string) (*story, error) {
	file := landmark(root)
	list, err := replay.Load(bytes.NewReader(fit(demoTranscript, file)))
	if err != nil {
		return nil, fmt.Errorf("the demo's recording: %w", err)
	}
	t := list[0]
	if file == "." {
		readDirectory(&t)
	}
	s := &story{Model: replay.New(t), task: t.Says(1)[0], victim: place{turn: 2, index: 1}}
	s.spec = schema.AgentSpec{
		ID: t.ID, Name: "Demo", Model: schema.ModelSpec{Provider: replay.Provider, Name: t.ID},
		Instructions: t.System(), Limits: schema.DefaultLimits(), Parallel: schema.Parallel{Calls: true},
		Tools: []string{"read_file", "list_files", "search_files", "watch_files", "bash"},
	}
	return s, nil
}

// fit puts a file's name into the recording: once as text of an answer, and as arguments, which are JSON inside JSON.
func fit(recording []byte, file string) []byte {
	quoted := func(s string) string {
		b, _ := json.Marshal(s) // a string always encodes
		return string(b[1 : len(b)-1])
	}
	return []byte(strings.NewReplacer(`\"FILE\"`, `\"`+quoted(quoted(file))+`\"`, "FILE", quoted(file)).Replace(string(recording)))
}

// readDirectory has the recording list what it would read: there is no file.
func readDirectory(t *replay.Transcript) {
	for _, m := range t.Messages {
		for i := range m.ToolCalls {
			if f := &m.ToolCalls[i].Function; f.Name == "read_file" {
				f.Name, f.Arguments = "list_files", `{"path": "."}`
			}
		}
	}
}

// Generate is the recorded answer with its marks filled in.
func (s *story) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	quiet := *req
	quiet.Delta = nil
	resp, err := s.Model.Generate(ctx, &quiet)
	if err != nil {
		return nil, err
	}
	resp.Text = fill(resp.Text, outputs(req.Messages))
	if req.Delta != nil && resp.Text != "" {
		req.Delta(model.Delta{Text: resp.Text})
	}
	return resp, nil
}

// outputs returns what the memory holds of each call.
func outputs(msgs []schema.Message) map[place]string {
	out := map[place]string{}
	var at place
	for _, m := range msgs {
		switch m.Role {
		case schema.RoleAssistant:
			at = place{turn: at.turn + 1}
		case schema.RoleTool:
			out[at] = m.Text
			at.index++
		}
	}
	return out
}

var marks = regexp.MustCompile(`\{\{(first|lines) (\d+)\.(\d+)\}\}`)

func fill(text string, outputs map[place]string) string {
	return marks.ReplaceAllStringFunc(text, func(mark string) string {
		m := marks.FindStringSubmatch(mark)
		turn, _ := strconv.Atoi(m[2]) // digits, as the expression says
		index, _ := strconv.Atoi(m[3])
		lines := strings.Split(strings.TrimSpace(outputs[place{turn, index}]), "\n")
		if m[1] == "lines" {
			return view.Count(len(lines), "line")
		}
		return lines[0]
	})
}
