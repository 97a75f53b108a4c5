package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/jetcrew/jetcrew/schema"
)

// Reader reads the facts of a run in stored order; a loop.Journal is one. It may be called while facts come.
type Reader interface {
	Facts(ctx context.Context, run string, upto uint64, kinds ...schema.Kind) ([]schema.Fact, error)
}

// maxTrails bounds the runs that a Log remembers; those of others it reads again.
const maxTrails = 1024

// Log hands the records of facts to a sink while they are stored, those of many runs between each other. It is not safe
// for concurrent use.
type Log struct {
	reader Reader
	sink   Sink
	trails map[string]*Trail
}

// NewLog returns a log that writes to sink. It reads from reader what a record names and is not known, such as the tool
// of a result that comes first after a restart.
func NewLog(reader Reader, sink Sink) *Log {
	return &Log{reader: reader, sink: sink, trails: map[string]*Trail{}}
}

// Put writes the records of one fact. After an error the fact is to be put again; some of its records may then come
// twice, with the same ids.
func (l *Log) Put(ctx context.Context, f schema.Fact) error {
	t, err := l.trail(ctx, f)
	if err != nil {
		return fmt.Errorf("audit run %s: %w", f.Run, err)
	}
	for _, r := range t.Apply(f) {
		if err := l.sink(ctx, r); err != nil {
			return err
		}
	}
	if f.Key.Kind == schema.KindClose {
		delete(l.trails, f.Run)
	}
	return nil
}

// trail returns the trail of the fact's run, with all that its records name.
func (l *Log) trail(ctx context.Context, f schema.Fact) (*Trail, error) {
	t := l.trails[f.Run]
	if t == nil {
		if len(l.trails) >= maxTrails {
			clear(l.trails)
		}
		t = New(f.Run)
		l.trails[f.Run] = t
	}
	if t.Knows(f.Key) {
		return t, nil
	}
	facts, err := l.reader.Facts(ctx, f.Run, 0, schema.KindOpen, schema.KindTurn)
	if err != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	for _, known := range facts {
		t.Apply(known)
	}
	return t, nil
}
