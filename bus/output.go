package bus

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jetcrew/jetcrew/schema"
)

const (
	keptOutput = 32 << 10 // bytes of head and tail of an output that is too long for a message
	maxWhy     = 16 << 10 // bytes of the message of a failure
	keepWithin = 30 * time.Second
)

// fitResult makes the result of a call on queue fit into a message. Of an output that is too long the whole goes to
// the object store, and the result keeps head and tail, with a line between them that says how to read the rest. An
// output above schema.MaxPayload is a failure.
func (b *Bus) fitResult(ctx context.Context, queue string, c *schema.Call, r *schema.Result) {
	if r.Error != nil {
		r.Error = &schema.Error{Type: r.Error.Type, Message: schema.Cut(schema.CleanText(r.Error.Message), maxWhy)}
	}
	r.Output = schema.CleanText(r.Output)
	switch {
	case len(r.Output) <= keptOutput:
		return
	case len(r.Output) > schema.MaxPayload:
		failed := c.Failf(schema.TooLarge, "the output has %d bytes, more than %d MiB", len(r.Output), schema.MaxPayload>>20)
		r.OK, r.Output, r.Error = false, failed.Output, failed.Error
		return
	}
	size, kept := int64(len(r.Output)), int64(0)
	blob, err := b.putBlob(ctx, queue, c.Run, strings.NewReader(r.Output))
	if err != nil {
		b.log.Warn("the middle of an output is lost", "call", c.String(), "bytes", size, "error", err)
	} else {
		r.Blob, kept = blob.Name, size
	}
	r.Size = size
	head, tail := schema.HeadTail(r.Output, keptOutput)
	omitted := size - int64(len(head)+len(tail))
	r.Output = head + schema.OmittedMark(c, int64(len(head)), omitted, size, kept) + tail
}

// Number says which delivery of its call d is.
func (d *delivery) Number() uint64 { return d.delivery }

// Keep stores the whole output of the call for its result. The tool's context may have ended, but its guard gives it
// up a grace later: a store that takes long is of no use.
func (d *delivery) Keep(whole io.ReadSeeker) error {
	ctx, cancel := context.WithTimeout(d.work, keepWithin)
	defer cancel()
	blob, err := d.bus.putBlob(ctx, d.worker.Queue, d.call.Run, whole)
	if err != nil {
		return fmt.Errorf("keep the output of call %s: %w", d.call, err)
	}
	d.kept.Store(&blob)
	return nil
}

// ReadOutput returns a part of the whole output of a recorded result of queue: at most limit bytes from offset on,
// moved to whole characters, and where it begins. It is empty at the end. ErrNoBlob: the output is not kept.
func (b *Bus) ReadOutput(ctx context.Context, queue string, r *schema.Result, offset, limit int64) (text string, from int64, err error) {
	if r.Blob == "" {
		return "", 0, fmt.Errorf("read output of %s/%d.%d: %w", r.Run, r.Turn, r.Index, ErrNoBlob)
	}
	if queue == schema.QueueNone {
		queue = schema.QueueAgents
	}
	s := &span{offset: max(0, offset), limit: max(0, limit)}
	if err := b.getBlob(ctx, queue, schema.Blob{Run: r.Run, Name: r.Blob}, s); err != nil {
		return "", 0, fmt.Errorf("read output of %s/%d.%d: %w", r.Run, r.Turn, r.Index, err)
	}
	part := s.whole()
	return string(part), s.offset + s.moved, nil
}

// span is a sink that keeps a part of what is written to it.
type span struct {
	offset, limit int64 // in bytes
	at            int64 // written so far
	part          bytes.Buffer
	moved         int64 // bytes that whole has cut off at the beginning
}

func (s *span) Reset() {
	s.at = 0
	s.part.Reset()
}

// Write keeps what lies in the span and a character's length behind it.
func (s *span) Write(p []byte) (int, error) {
	from, to := max(0, s.offset-s.at), min(int64(len(p)), s.offset+s.limit+utf8.UTFMax-s.at)
	if from < to {
		s.part.Write(p[from:to])
	}
	s.at += int64(len(p))
	return len(p), nil
}

// whole returns the part from its first to its last whole character. A character belongs to the part in which it
// begins.
func (s *span) whole() []byte {
	b := s.part.Bytes()
	for s.offset > 0 && s.moved < min(utf8.UTFMax, int64(len(b))) && !utf8.RuneStart(b[s.moved]) {
		s.moved++
	}
	end := min(s.limit, int64(len(b)))
	for end < int64(len(b)) && end < s.limit+utf8.UTFMax && !utf8.RuneStart(b[end]) {
		end++
	}
	return b[min(s.moved, end):end]
}
