package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/jetcrew/jetcrew/loop/model/replay"
)

// writeTranscripts writes the file of --record, in place of what was there.
func writeTranscripts(path string, list ...replay.Transcript) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if err := errors.Join(replay.Write(f, list...), f.Close()); err != nil {
		return fmt.Errorf("record %s: %w", path, err)
	}
	return nil
}
