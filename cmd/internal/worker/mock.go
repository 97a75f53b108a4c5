package worker

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/loop/model/replay"
	"github.com/jetcrew/jetcrew/schema"
)

// MockQueue is the queue of mocks unless another is named.
const MockQueue = "mock"

// Mock is the command that answers with recorded outputs.
type Mock struct {
	Process
	Files []string `arg:"" name:"file" type:"existingfile" help:"Transcripts, one JSON object per line."`
	Queue string   `default:"mock" help:"Queue to serve."`
	Slots int      `default:"8" help:"Calls at once."`
	Delay Delay    `placeholder:"0-50ms" help:"How long a call takes; a range is drawn from anew for each attempt."`
	Fail  Share    `placeholder:"1%" help:"Share of attempts that fail for the moment, so that the call is tried again."`
	Seed  uint64   `placeholder:"N" help:"Another seed gives other delays and failures; the same one gives the same."`
}

// Validate checks what kong cannot.
func (m *Mock) Validate() error { return schema.CheckQueue(m.Queue) }

// Run serves until ctx ends, then drains.
func (m *Mock) Run(ctx context.Context, app *cli.App) error {
	list, err := Transcripts(m.Files...)
	if err != nil {
		return &cli.ExitError{Code: cli.CodeUsage, Err: err}
	}
	set, err := newRecording(list, m).set(app)
	if err != nil {
		return err
	}
	return m.work(ctx, app, []bus.Worker{{Queue: m.Queue, Slots: m.Slots, Tools: set}})
}

// Transcripts reads the transcripts of all files. An id that stands in two of them is an error, and so are transcripts
// that list no tool: a mock of them would serve nothing.
func Transcripts(files ...string) ([]replay.Transcript, error) {
	var all []replay.Transcript
	from := map[string]string{}
	for _, name := range files {
		list, err := load(name)
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			if other, ok := from[t.ID]; ok {
				return nil, fmt.Errorf("%s: the transcript %q stands in %s already", name, t.ID, other)
			}
			from[t.ID] = name
		}
		all = append(all, list...)
	}
	if !slices.ContainsFunc(all, func(t replay.Transcript) bool { return len(t.Tools) > 0 }) {
		return nil, fmt.Errorf("%s: no transcript lists a tool in its \"tools\", so there is nothing to serve", files[0])
	}
	return all, nil
}

func load(name string) ([]replay.Transcript, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // nothing is written
	list, err := replay.Load(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: holds no transcript", name)
	}
	return list, nil
}
