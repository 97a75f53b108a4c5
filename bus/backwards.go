package bus

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// Bounds of reading a stream from its end. A stream is read in windows of sequences, which grow while they hold little
// and shrink when they hold more than is kept at once.
const (
	keptAtOnce  = 64   // messages in memory
	firstWindow = 1024 // sequences
)

// stored is a message as it lies in a stream.
type stored struct {
	subject string
	seq     uint64
	at      time.Time
	data    []byte
}

func storedOf(m *nats.Msg) (s stored, err error) {
	s.subject, s.data = stamp(m, "Nats-Subject"), m.Data
	if s.seq, err = strconv.ParseUint(stamp(m, headerSequence), 10, 64); err != nil {
		return s, fmt.Errorf("stored message of %s: sequence: %w", s.subject, err)
	}
	if s.at, err = time.Parse(time.RFC3339Nano, stamp(m, "Nats-Time-Stamp")); err != nil {
		return s, fmt.Errorf("stored message %d of %s: time: %w", s.seq, s.subject, err)
	}
	return s, nil
}

// backwards reads the messages of a stream that filter matches, newest first, in groups of at most keptAtOnce that
// never hold nothing. Who stops early has paid for little more than what was read.
func (b *Bus) backwards(ctx context.Context, stream, filter string) iter.Seq2[[]stored, error] {
	return func(yield func([]stored, error) bool) {
		s, err := b.js.Stream(ctx, stream)
		if err != nil {
			yield(nil, fmt.Errorf("look at stream %s: %w", stream, err))
			return
		}
		first, width := max(1, s.CachedInfo().State.FirstSeq), uint64(firstWindow)
		for end := s.CachedInfo().State.LastSeq + 1; end > first; {
			w := window{from: end - min(width, end-first), end: end}
			if err := b.readWindow(ctx, stream, filter, &w); err != nil {
				yield(nil, err)
				return
			}
			slices.Reverse(w.kept)
			if len(w.kept) > 0 && !yield(w.kept, nil) {
				return
			}
			end, width = w.next(width)
		}
	}
}

// window is a part of a stream, from the sequence from until before end.
type window struct {
	from, end uint64
	kept      []stored // the newest of those that match
	matched   uint64
	past      bool // something at or after end was read
}

func (w *window) take(m stored) {
	if m.seq >= w.end {
		w.past = true
		return
	}
	w.matched++
	if len(w.kept) == keptAtOnce {
		w.kept = slices.Delete(w.kept, 0, 1)
	}
	w.kept = append(w.kept, m)
}

// next returns where the window before this one ends and how wide it is. kept is in reverse order by now.
func (w *window) next(width uint64) (end, wide uint64) {
	switch n := uint64(len(w.kept)); {
	case w.matched > n:
		return w.kept[n-1].seq, max(keptAtOnce, width*keptAtOnce/w.matched)
	case n < keptAtOnce/2:
		return w.from, width * 2
	}
	return w.from, width
}

func (b *Bus) readWindow(ctx context.Context, stream, filter string, w *window) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for from := w.from; ; {
		p, err := b.directGet(ctx, stream, following(filter, from, keptAtOnce), func(m *nats.Msg) {
			s, err := storedOf(m)
			if err != nil {
				b.log.Warn("stored message left out", "stream", stream, "error", err)
				return
			}
			w.take(s)
		})
		if err != nil || !p.more || w.past {
			return err
		}
		from = max(from, p.last) + 1
	}
}
