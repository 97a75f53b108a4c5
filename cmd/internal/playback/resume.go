package playback

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/model/replay"
	"github.com/jetcrew/jetcrew/schema"
)

const (
	digestSize = 26                  // characters of a run's id that stand for its transcript
	maxRuns    = 64 - 1 - digestSize // characters of Player.Runs
)

// CheckRuns returns an error if ids of runs cannot begin with prefix.
func CheckRuns(prefix string) error {
	if !schema.ValidID(prefix) || len(prefix) > maxRuns {
		return fmt.Errorf("%.80q: want 1 to %d of A-Z, a-z, 0-9, '_', '-'", prefix, maxRuns)
	}
	return nil
}

// RunID returns the id of the run in which a transcript is played. It is derived from all of the transcript, whose own id
// may be long and hold any sign: a file that was changed begins anew.
func RunID(prefix string, t *replay.Transcript) (string, error) {
	data, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("run id: %w", err)
	}
	sum := sha256.Sum256(data)
	return prefix + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:digestSize], nil
}

// begin starts the run, or takes it over from an earlier process. It stays nil when that one had closed it.
func (g *game) begin(ctx context.Context, agent *loop.Agent) (err error) {
	if g.player.Runs == "" {
		if g.run, err = agent.Start(ctx, ""); err == nil {
			g.id = g.run.ID()
		}
		return err
	}
	if g.id, err = RunID(g.player.Runs, g.transcript); err != nil {
		return err
	}
	g.run, err = agent.Start(ctx, g.id)
	if !errors.Is(err, loop.ErrRunExists) {
		return err
	}
	g.resumed = true
	return eventually(ctx, func(context.Context) (there bool, err error) {
		g.run, err = agent.Resume(ctx, g.id)
		switch {
		case errors.Is(err, loop.ErrNoRun):
			return false, nil // this replica does not know it yet
		case errors.Is(err, loop.ErrClosed):
			return true, nil
		}
		return true, err
	})
}
