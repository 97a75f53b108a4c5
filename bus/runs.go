package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// Errors of naming and steering a run.
var (
	// ErrNoRun: no run has the id.
	ErrNoRun = errors.New("there is no such run")
	// ErrRunClosed: the run is closed and takes nothing any more.
	ErrRunClosed = errors.New("the run is closed")
	// ErrRunQueued: the run waits in the queue, and takes nothing before somebody has opened it.
	ErrRunQueued = errors.New("the run waits in the queue, nobody has taken it yet")
)

// AmbiguousError says that several runs have ids that begin alike.
type AmbiguousError struct {
	Prefix string
	Runs   []string // two of them
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q begins the ids of several runs, such as %s", e.Prefix, strings.Join(e.Runs, " and "))
}

// RunInfo is a run as its first and its last fact tell.
type RunInfo struct {
	ID    string
	At    time.Time     // when open was stored
	Open  schema.Open   // zero when it cannot be read
	Close *schema.Close // nil: the run is open, or was a moment ago
}

// Runs returns the runs, newest first, while they are asked for: at most 64 are in memory at once. After an error
// nothing follows.
func (b *Bus) Runs(ctx context.Context) iter.Seq2[RunInfo, error] {
	return func(yield func(RunInfo, error) bool) {
		for group, err := range b.backwards(ctx, b.names.runs(), b.names.fact("*", schema.OpenKey())) {
			if err != nil {
				yield(RunInfo{}, fmt.Errorf("list runs: %w", err))
				return
			}
			infos, err := b.runInfos(ctx, group)
			if err != nil {
				yield(RunInfo{}, fmt.Errorf("list runs: %w", err))
				return
			}
			for _, info := range infos {
				if !yield(info, nil) {
					return
				}
			}
		}
	}
}

// runInfos reads open facts, and the close facts of the same runs.
func (b *Bus) runInfos(ctx context.Context, opens []stored) ([]RunInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var infos []RunInfo
	var subjects []string
	at := map[string]int{}
	for _, m := range opens {
		id, _, ok := b.names.cutRun(m.subject, "run")
		if !ok || !schema.ValidID(id) {
			continue // a stranger's
		}
		info := RunInfo{ID: id, At: m.at}
		data, err := b.referred(ctx, schema.QueueAgents, id, m.data)
		if err == nil {
			err = schema.Decode(data, &info.Open)
		}
		if err != nil {
			b.log.Warn("first fact of a run cannot be read", "run", id, "error", err)
			info.Open = schema.Open{}
		}
		at[id] = len(infos)
		infos, subjects = append(infos, info), append(subjects, b.names.fact(id, schema.CloseKey()))
	}
	if len(infos) == 0 {
		return nil, nil
	}
	closes, err := b.multiGet(ctx, subjects)
	if err != nil {
		return nil, err
	}
	for _, f := range closes {
		end := new(schema.Close)
		if err := schema.Decode(f.Data, end); err != nil {
			b.log.Warn("last fact of a run cannot be read", "run", f.Run, "error", err)
			end = &schema.Close{State: "unreadable"}
		}
		infos[at[f.Run]].Close = end
	}
	return infos, nil
}

// FindRun returns the id of the run whose id is prefix, or the only one whose id begins with it. ErrNoRun: there is
// none. An *AmbiguousError: there are several.
func (b *Bus) FindRun(ctx context.Context, prefix string) (string, error) {
	if !schema.ValidID(prefix) {
		return "", fmt.Errorf("run %.80q: %w", prefix, ErrNoRun) // no id is like that
	}
	open, err := b.lookFact(ctx, prefix, schema.OpenKey())
	if err != nil {
		return "", fmt.Errorf("find run %s: %w", prefix, err)
	}
	if open != nil {
		return prefix, nil
	}
	found, err := b.runsLike(ctx, prefix)
	switch {
	case err != nil:
		return "", fmt.Errorf("find run %s: %w", prefix, err)
	case len(found) == 0:
		return "", fmt.Errorf("run %s: %w", prefix, ErrNoRun)
	case len(found) > 1:
		return "", &AmbiguousError{Prefix: prefix, Runs: found}
	}
	return found[0], nil
}

// runsLike returns at most two runs whose ids begin with prefix. The stream lists the names of its subjects without
// their payloads, page by page.
func (b *Bus) runsLike(ctx context.Context, prefix string) (found []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for offset := 0; ; {
		subjects, total, err := b.subjects(ctx, b.names.runs(), b.names.fact("*", schema.OpenKey()), offset)
		if err != nil {
			return nil, err
		}
		for s := range subjects {
			if id, _, ok := b.names.cutRun(s, "run"); ok && strings.HasPrefix(id, prefix) {
				if found = append(found, id); len(found) == 2 {
					return found, nil
				}
			}
		}
		if offset += len(subjects); len(subjects) == 0 || offset >= total {
			return found, nil
		}
	}
}

// subjects returns one page of the subjects of a stream that filter matches, and how many there are in all.
func (b *Bus) subjects(ctx context.Context, stream, filter string, offset int) (page map[string]int, total int, err error) {
	body, err := json.Marshal(map[string]any{"subjects_filter": filter, "offset": offset})
	if err != nil {
		return nil, 0, err
	}
	reply, err := b.nc.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+stream, body)
	if err != nil {
		return nil, 0, err
	}
	var r struct {
		Error *apiError `json:"error"`
		Total int       `json:"total"`
		State struct {
			Subjects map[string]int `json:"subjects"`
		} `json:"state"`
	}
	if err := json.Unmarshal(reply.Data, &r); err != nil {
		return nil, 0, fmt.Errorf("stream info: answer %.100q: %w", reply.Data, err)
	}
	if r.Error != nil {
		return nil, 0, r.Error
	}
	return r.State.Subjects, r.Total, nil
}
