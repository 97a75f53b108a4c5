package toolkit

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

const (
	progressEvery = 200 * time.Millisecond
	progressBytes = 4 << 10 // of one report; what comes faster than that is left out of reports
)

// output gathers what a command prints, in bounded memory, and reports it as progress: at once, then at most every
// progressEvery. It lives for one command, whose context it keeps for the reports and for the whole of what was printed.
type output struct {
	ctx context.Context

	mu      sync.Mutex
	all     *clip
	whole   spool
	fresh   []byte // the last bytes not reported yet
	timer   *time.Timer
	waiting bool // the timer will report
	closed  bool
}

func newOutput(ctx context.Context, limit int) *output { return &output{ctx: ctx, all: newClip(limit)} }

// Write never fails; a command that prints for ever is its timeout's business.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return len(p), nil
	}
	if o.whole.file == nil && o.whole.err == nil && !o.all.fits(len(p)) {
		o.whole.begin(o.all.head, o.all.tail)
	}
	o.whole.write(p)
	_, _ = o.all.Write(p)
	o.keep(p)
	if !o.waiting {
		o.report()
		o.arm()
	}
	return len(p), nil
}

func (o *output) keep(p []byte) {
	if len(p) >= progressBytes {
		o.fresh = append(o.fresh[:0], p[len(p)-progressBytes:]...)
		return
	}
	if over := len(o.fresh) + len(p) - progressBytes; over > 0 {
		o.fresh = append(o.fresh[:0], o.fresh[over:]...)
	}
	o.fresh = append(o.fresh, p...)
}

func (o *output) arm() {
	o.waiting = true
	if o.timer == nil {
		o.timer = time.AfterFunc(progressEvery, o.tick)
		return
	}
	o.timer.Reset(progressEvery)
}

func (o *output) tick() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = false
	if !o.closed && len(o.fresh) > 0 {
		o.report()
		o.arm()
	}
}

// report sends what is fresh and whole; the beginning of a character waits for its end.
func (o *output) report() {
	text := wholeEnd(o.fresh)
	if len(text) == 0 {
		return
	}
	schema.Progress(o.ctx, schema.CleanText(string(wholeStart(text))))
	o.fresh = append(o.fresh[:0], o.fresh[len(text):]...)
}

// close ends the reports; it may be called again.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if o.timer != nil {
		o.timer.Stop()
	}
	o.whole.close()
}

// end ends the reports and returns the text. Where it is not the whole, the whole is kept beside the result of the
// call if it can be; kept is then what a failure says about it.
func (o *output) end() (text, kept string) {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	defer o.close()
	call := executor.CallOf(o.ctx)
	bytes := o.whole.keep(o.ctx)
	if bytes == 0 || call == nil {
		return o.all.String(), ""
	}
	text = o.all.text(func(from, omitted int64) string {
		return schema.OmittedMark(call, from, omitted, o.all.total, bytes)
	})
	return text, fmt.Sprintf(`, %s {"call":"%d.%d"} reads its output`, schema.ToolReadOutput, call.Turn, call.Index)
}
