package bus

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/schema"
)

// WatchProgress calls f for everything that running calls of run say from now on, from one goroutine, until stop is
// called, which returns when f is not running any more and so must not be called by it. It is for eyes, such as who
// works on a call before its result: what is said while the connection is broken is lost.
func (b *Bus) WatchProgress(run string, f func(turn, index int, p Progress)) (stop func(), err error) {
	var speaking sync.Mutex
	stopped := false
	sub, err := b.nc.Subscribe(b.names.prefix+".progress."+run+".>", func(m *nats.Msg) {
		turn, index, p, ok := b.readProgress(m)
		speaking.Lock()
		defer speaking.Unlock()
		if ok && !stopped {
			f(turn, index, p)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("watch progress of run %s: %w", run, err)
	}
	return func() {
		_ = sub.Unsubscribe() // fails only on a closed connection, where nothing is left to end
		speaking.Lock()       // whoever is called now returns first
		defer speaking.Unlock()
		stopped = true
	}, nil
}

// readProgress reads a message about a running call; ok is false for a stranger's.
func (b *Bus) readProgress(m *nats.Msg) (turn, index int, p Progress, ok bool) {
	_, rest, _ := b.names.cutRun(m.Subject, "progress")
	n, i, _ := strings.Cut(rest, ".")
	turn, errN := strconv.Atoi(n)
	index, errI := strconv.Atoi(i)
	if errN != nil || errI != nil || schema.Decode(m.Data, &p) != nil {
		return 0, 0, Progress{}, false
	}
	p.Text = schema.CleanText(p.Text)
	return turn, index, p, true
}
