package worker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
)

const (
	orphanDrain = 2 * time.Second  // for calls that run when the parent is gone
	orphanExit  = 10 * time.Second // for everything else
)

// parent is the process that started this one. It holds the other end of standard input, which the system closes when
// it ends, however it ends.
type parent struct {
	url   string
	input *bufio.Reader
}

// followParent reads the server's URL, the first line. The terminal's signals are the parent's business from here on.
func followParent(in io.Reader) (*parent, error) {
	cli.IgnoreInterrupt()
	p := &parent{input: bufio.NewReader(in)}
	line, err := p.input.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("read the server's URL from standard input: %w", err)
	}
	p.url = strings.TrimSpace(line)
	return p, nil
}

// watch returns when the parent is gone; it then lets the worker drain, and since the parent's server is gone too,
// ends what does not.
func (p *parent) watch(drain context.CancelFunc, b *bus.Bus) {
	_, _ = io.Copy(io.Discard, p.input) // its end is what matters
	drain()
	time.AfterFunc(orphanDrain, b.Close)
	time.AfterFunc(orphanExit, func() { os.Exit(cli.CodeFailed) })
}
