package session

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"github.com/jetcrew/jetcrew/schema"
)

const maxTail = 4 << 10 // bytes

// tail keeps the last bytes written to it, and passes everything on where it has somebody to pass it to.
type tail struct {
	to io.Writer // nil: nobody

	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - maxTail; over > 0 {
		t.buf = t.buf[:copy(t.buf, t.buf[over:])]
	}
	if t.to != nil {
		_, _ = t.to.Write(p) // the worker goes on whether or not somebody reads
	}
	return len(p), nil
}

// String returns the last whole lines.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.buf
	if _, rest, ok := bytes.Cut(text, []byte("\n")); ok && len(text) == maxTail {
		text = rest // the first line is cut
	}
	return schema.CleanText(strings.TrimRight(string(text), "\n"))
}
