package toolkit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

const (
	watchDefault  = 3 * time.Second
	watchLook     = 100 * time.Millisecond // between two looks at the files
	watchProgress = 500 * time.Millisecond // between two words about it
	maxWatched    = 20_000                 // files
)

type watchArgs struct {
	Path      string `json:"path,omitempty" jsonschema:"default=.,description=File or directory below the working directory"`
	TimeoutMS int64  `json:"timeout_ms,omitempty" jsonschema:"minimum=1,maximum=60000,default=3000,description=How long to wait in milliseconds"`
}

func (f *files) watchTool() executor.Tool {
	return executor.Func("watch_files", "Waits until a file is created, changed or removed below a path, or until the time has passed, and says what changed.",
		f.watch, executor.Idempotent(), executor.Effect(schema.EffectRead), executor.Timeout(fileTimeout+10*time.Second))
}

func (f *files) watch(ctx context.Context, in watchArgs) (string, error) {
	name, wait := f.name(in.Path), watchDefault
	if in.TimeoutMS > 0 {
		wait = time.Duration(in.TimeoutMS) * time.Millisecond
	}
	before, err := f.snapshot(ctx, name)
	if err != nil {
		return "", err
	}
	schema.Progress(ctx, fmt.Sprintf("watching %s (%d files)", name, len(before)))
	look := time.NewTicker(watchLook)
	defer look.Stop()
	start, said := time.Now(), time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-look.C:
		}
		now, err := f.snapshot(ctx, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a path that has gone is a change
			return "", err
		}
		passed := time.Since(start)
		switch changed := f.changes(before, now); {
		case changed != "":
			return changed, nil
		case passed >= wait:
			return "no change", nil
		case passed >= said+watchProgress:
			said = passed.Truncate(watchProgress)
			schema.Progress(ctx, fmt.Sprintf("watching %s: no change after %v", name, said))
		}
	}
}

// stamp is what tells one state of a file from another.
type stamp struct {
	size int64
	mode fs.FileMode
	time time.Time
}

// snapshot returns the stamps of the files below name; if name itself is not there any more, none.
func (f *files) snapshot(ctx context.Context, name string) (map[string]stamp, error) {
	stamps := make(map[string]stamp)
	err := f.walk(ctx, name, func(file, _ string, e fs.DirEntry) error {
		if len(stamps) == maxWatched {
			return fmt.Errorf("%s: more than %d files, watch a narrower path", name, maxWatched)
		}
		info, err := e.Info()
		if err != nil || e.IsDir() {
			return nil // gone since, or its content counts
		}
		stamps[file] = stamp{info.Size(), info.Mode(), info.ModTime()}
		return nil
	})
	return stamps, err
}

// changes says what differs between two snapshots, one file a line.
func (f *files) changes(before, now map[string]stamp) string {
	l := listing{limit: f.max}
	for _, name := range slices.Sorted(maps.Keys(union(before, now))) {
		old, was := before[name]
		s, is := now[name]
		switch {
		case !was:
			l.add("created " + name)
		case !is:
			l.add("removed " + name)
		case s.size != old.size || s.mode != old.mode || !s.time.Equal(old.time):
			l.add("changed " + name)
		}
	}
	return l.text("")
}

func union(a, b map[string]stamp) map[string]stamp {
	u := maps.Clone(a)
	maps.Copy(u, b)
	return u
}
