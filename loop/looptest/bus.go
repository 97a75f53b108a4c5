package looptest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
)

var (
	_ loop.Journal  = (*Bus)(nil)
	_ loop.Registry = (*Bus)(nil)
)

// Bus is a loop.Journal, loop.Dispatcher and loop.Registry in memory. Set its fields before use.
type Bus struct {
	// Refuse, if not nil, is asked before each Append; its error is returned and nothing is written.
	Refuse func(run string, key schema.Key, payload schema.Encodable) error
	// Broken, if not nil, is asked before each Dispatch; its error is returned and the call does not run.
	Broken func(call *schema.Call) error
	// Alter, if not nil, changes results before they are recorded.
	Alter func(r *schema.Result, call *schema.Call)
	// Deaf keeps watches from hearing anything.
	Deaf bool

	mu    sync.Mutex
	seq   uint64
	runs  map[string][]schema.Fact
	index map[string]map[schema.Key]int // of a fact in runs
	heard map[string]map[*watch]bool
	tools []tool
	now   int // calls under way
	most  int
}

type watch struct {
	mu   sync.Mutex // held while fn runs
	over bool
	fn   func(schema.Fact)
}

// NewBus returns an empty bus.
func NewBus() *Bus {
	return &Bus{
		runs:  make(map[string][]schema.Fact),
		index: make(map[string]map[schema.Key]int),
		heard: make(map[string]map[*watch]bool),
	}
}

// Append implements loop.Journal.
func (b *Bus) Append(ctx context.Context, run string, key schema.Key, payload schema.Encodable, unless schema.Key) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if b.Refuse != nil {
		if err := b.Refuse(run, key, payload); err != nil {
			return 0, err
		}
	}
	data, err := schema.Encode(payload)
	if err != nil {
		return 0, err
	}
	f, watches, err := b.store(schema.Fact{Run: run, Key: key, Time: time.Now(), Data: data}, unless)
	if err != nil {
		return 0, err
	}
	for _, w := range watches {
		if !b.Deaf {
			w.hear(f)
		}
	}
	return f.Seq, nil
}

func (b *Bus) store(f schema.Fact, unless schema.Key) (schema.Fact, []*watch, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !unless.IsZero() && b.guarded(f.Run, unless) {
		return f, nil, fmt.Errorf("append %s: %w", f.Key, schema.ErrGuarded)
	}
	if b.has(f.Run, f.Key) {
		return f, nil, fmt.Errorf("append %s: %w", f.Key, schema.ErrExists)
	}
	b.seq++
	f.Seq = b.seq
	if b.index[f.Run] == nil {
		b.index[f.Run] = make(map[schema.Key]int)
	}
	b.index[f.Run][f.Key] = len(b.runs[f.Run])
	b.runs[f.Run] = append(b.runs[f.Run], f)
	var watches []*watch
	switch f.Key.Kind {
	case schema.KindCtl, schema.KindSay, schema.KindVerdict, schema.KindClose:
		for w := range b.heard[f.Run] {
			watches = append(watches, w)
		}
	}
	return f, watches, nil
}

// has wants b.mu held.
func (b *Bus) has(run string, key schema.Key) bool {
	_, ok := b.index[run][key]
	return ok
}

// guarded wants b.mu held.
func (b *Bus) guarded(run string, unless schema.Key) bool {
	run, unless.Run = cmp.Or(unless.Run, run), ""
	return b.has(run, unless)
}

// Facts implements loop.Journal. A barrier that is none of the wanted facts is an error, since the real one would wait for
// it in vain.
func (b *Bus) Facts(ctx context.Context, run string, upto uint64, kinds ...schema.Kind) ([]schema.Fact, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	facts := slices.DeleteFunc(slices.Clone(b.runs[run]), func(f schema.Fact) bool {
		return len(kinds) > 0 && !slices.Contains(kinds, f.Key.Kind)
	})
	if upto > 0 && (len(facts) == 0 || facts[len(facts)-1].Seq < upto) {
		return nil, fmt.Errorf("the barrier %d is no fact of the kinds %v", upto, kinds)
	}
	return facts, nil
}

// Keys returns the keys of a run's facts in stored order, as text.
func (b *Bus) Keys(run string) []string {
	facts, _ := b.Facts(context.Background(), run, 0)
	keys := make([]string, len(facts))
	for i, f := range facts {
		keys[i] = f.Key.String()
	}
	return keys
}

// Fact reads one fact of a run into payload, and tells whether it is there.
func (b *Bus) Fact(run string, key schema.Key, payload schema.Encodable) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.index[run][key]
	return ok && schema.Decode(b.runs[run][i].Data, payload) == nil
}

// Watch implements loop.Journal.
func (b *Bus) Watch(_ context.Context, run string, heard func(schema.Fact)) (func(), error) {
	w := &watch{fn: heard}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.heard[run] == nil {
		b.heard[run] = make(map[*watch]bool)
	}
	b.heard[run][w] = true
	return func() {
		b.mu.Lock()
		delete(b.heard[run], w)
		b.mu.Unlock()
		w.mu.Lock()
		w.over = true
		w.mu.Unlock()
	}, nil
}

func (w *watch) hear(f schema.Fact) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.fn(f)
	}
}
