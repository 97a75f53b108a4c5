package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/jetcrew/jetcrew/cmd/internal/view"
)

const barWidth = 30

// bar is a progress bar on a terminal; elsewhere it does nothing. It is safe for concurrent use.
type bar struct {
	mu    sync.Mutex
	out   io.Writer // nil: no terminal
	total int
	done  int
	calls int
	drawn time.Time // zero: nothing is drawn
}

func newBar(out io.Writer, total int) *bar {
	if !view.IsTerminal(out) {
		out = nil
	}
	return &bar{out: out, total: total}
}

// call counts a call.
func (b *bar) call() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	b.draw()
}

// played counts a transcript.
func (b *bar) played() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done++
	b.draw()
}

// hide makes room for other lines; the next count draws the bar again.
func (b *bar) hide() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.out == nil || b.drawn.IsZero() {
		return
	}
	fmt.Fprint(b.out, "\r\x1b[K")
	b.drawn = time.Time{}
}

func (b *bar) draw() {
	if b.out == nil || time.Since(b.drawn) < progressEvery {
		return
	}
	b.drawn = time.Now()
	full := b.done * barWidth / max(1, b.total)
	fmt.Fprintf(b.out, "\r\x1b[K%s%s %d/%d, %s", strings.Repeat("█", full), strings.Repeat("░", barWidth-full),
		b.done, b.total, view.Count(b.calls, "call"))
}
