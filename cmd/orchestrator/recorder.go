package main

import (
	"context"
	"fmt"
	"os"

	"github.com/jetcrew/jetcrew/cmd/internal/playback"
	"github.com/jetcrew/jetcrew/loop"
)

// recorder writes a run to a file as a transcript; the zero recorder writes nothing.
type recorder struct{ path string }

// newRecorder makes sure that the file can be written before the run; what it holds stays until the run is over.
func newRecorder(path string) (recorder, error) {
	if path == "" {
		return recorder{}, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return recorder{}, fmt.Errorf("record: %w", err)
	}
	return recorder{path}, f.Close()
}

// write records what the agent's memory holds, also when the run failed.
func (r recorder) write(ctx context.Context, agent string, run *loop.Run, tools loop.Registry) error {
	if r.path == "" {
		return nil
	}
	seen, err := tools.Tools(context.WithoutCancel(ctx))
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return writeTranscripts(r.path, playback.Record(agent, seen, run.State()))
}
