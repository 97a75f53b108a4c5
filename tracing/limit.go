package tracing

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Bounds of what is exported, in bytes. Collectors refuse a request above 4 MiB for good, with every span in it.
const (
	maxName  = 128      // the outside part of a name
	maxValue = 4 << 10  // one attribute value, event name or status text
	maxSpan  = 64 << 10 // all texts of one span together
	maxBatch = 1 << 20  // one export request, as estimated
	overhead = 512      // of one span in a request, without its texts
	perAttr  = 24       // of one attribute, without its key and text
	perEvent = 64       // of one event or link, without its attributes
)

// limiter cuts ended spans to size before they wait for export, so that a huge text is neither held nor sent. The SDK
// has a limit too, but for attributes of the span alone, and it does not tell how much is gone.
type limiter struct {
	sdktrace.SpanProcessor
	value int // bound of one value in bytes
}

// OnEnd hands the span on, cut if it needs it.
func (l *limiter) OnEnd(s sdktrace.ReadOnlySpan) {
	c := cutter{value: l.value, left: maxSpan}
	if cutSpan := c.span(s); len(c.cut) > 0 {
		s = cutSpan
	}
	l.SpanProcessor.OnEnd(s)
}

// shortSpan is a span with shorter texts.
type shortSpan struct {
	sdktrace.ReadOnlySpan
	name   string
	attrs  []attribute.KeyValue
	events []sdktrace.Event
	links  []sdktrace.Link
	status sdktrace.Status
}

func (s *shortSpan) Name() string                     { return s.name }
func (s *shortSpan) Attributes() []attribute.KeyValue { return s.attrs }
func (s *shortSpan) Events() []sdktrace.Event         { return s.events }
func (s *shortSpan) Links() []sdktrace.Link           { return s.links }
func (s *shortSpan) Status() sdktrace.Status          { return s.status }

// cutter cuts the texts of one span. It copies a list before it changes it: snapshots may share them.
type cutter struct {
	value int      // bound of one text
	left  int      // of the whole span
	cut   []string // what was cut, with the original sizes
}

func (c *cutter) span(s sdktrace.ReadOnlySpan) *shortSpan {
	out := &shortSpan{ReadOnlySpan: s, status: s.Status()}
	out.name = c.text("name", s.Name())
	out.status.Description = c.text("status", out.status.Description)
	out.attrs = c.attributes("", s.Attributes())
	out.events = c.events(s.Events())
	out.links = c.links(s.Links())
	if len(c.cut) > 0 {
		out.attrs = append(out.attrs[:len(out.attrs):len(out.attrs)], AttrCut.StringSlice(c.cut[:min(len(c.cut), 32)]))
	}
	return out
}

func (c *cutter) events(in []sdktrace.Event) []sdktrace.Event {
	out := append([]sdktrace.Event(nil), in...)
	for i := range out {
		out[i].Name = c.text("event", in[i].Name)
		out[i].Attributes = c.attributes("event ", in[i].Attributes)
	}
	return out
}

func (c *cutter) links(in []sdktrace.Link) []sdktrace.Link {
	out := append([]sdktrace.Link(nil), in...)
	for i := range out {
		out[i].Attributes = c.attributes("link ", in[i].Attributes)
	}
	return out
}

func (c *cutter) attributes(where string, in []attribute.KeyValue) []attribute.KeyValue {
	var out []attribute.KeyValue
	for i, kv := range in {
		before := len(c.cut)
		v := c.attribute(where+cut(string(kv.Key), maxName), kv.Value)
		if len(c.cut) == before {
			continue
		}
		if out == nil {
			out = append(out, in...)
		}
		out[i].Value = v
	}
	if out == nil {
		return in
	}
	return out
}

func (c *cutter) attribute(what string, v attribute.Value) attribute.Value {
	switch v.Type() {
	case attribute.STRING:
		return attribute.StringValue(c.text(what, v.AsString()))
	case attribute.STRINGSLICE:
		return c.list(what, v)
	case attribute.BYTESLICE, attribute.SLICE, attribute.MAP:
		return c.nested(what, v)
	}
	return v
}

func (c *cutter) list(what string, v attribute.Value) attribute.Value {
	list := v.AsStringSlice()
	for i, s := range list {
		list[i] = c.text(what, s)
	}
	return attribute.StringSliceValue(list)
}

// nested keeps a small value as it is and turns a large one into the beginning of its text.
func (c *cutter) nested(what string, v attribute.Value) attribute.Value {
	s := v.String()
	before := len(c.cut)
	if short := c.text(what, s); len(c.cut) > before {
		return attribute.StringValue(short)
	}
	return v
}

// text returns s within its bound and the span's, as valid UTF-8: one bad byte makes protobuf refuse the whole batch.
func (c *cutter) text(what, s string) string {
	bound := min(c.value, c.left)
	if len(s) <= bound && utf8.ValidString(s) {
		c.left -= len(s)
		return s
	}
	c.cut = append(c.cut, fmt.Sprintf("%s=%d", what, len(s)))
	s = cut(s, bound)
	c.left -= len(s)
	return s
}

// cut returns s in at most max bytes of valid UTF-8, never ending inside a character.
func cut(s string, max int) string {
	if len(s) > max {
		for max > 0 && !utf8.RuneStart(s[max]) {
			max--
		}
		s = s[:max]
	}
	// The replacement character of three bytes may stand for one: keep the bound by replacing with a shorter one.
	return strings.ToValidUTF8(s, "?")
}

// weigh estimates the size of a span in an export request.
func weigh(s sdktrace.ReadOnlySpan) int {
	n := overhead + len(s.Name()) + len(s.Status().Description) + weighAttributes(s.Attributes())
	for _, e := range s.Events() {
		n += perEvent + len(e.Name) + weighAttributes(e.Attributes)
	}
	for _, l := range s.Links() {
		n += perEvent + weighAttributes(l.Attributes)
	}
	return n
}

func weighAttributes(attrs []attribute.KeyValue) int {
	n := 0
	for _, kv := range attrs {
		n += perAttr + len(kv.Key)
		switch kv.Value.Type() {
		case attribute.STRING:
			n += len(kv.Value.AsString())
		case attribute.BOOL, attribute.INT64, attribute.FLOAT64:
		default:
			n += len(kv.Value.String())
		}
	}
	return n
}

// boundedExporter sends spans in requests of bounded size, and no longer than life lasts.
type boundedExporter struct {
	sdktrace.SpanExporter
	life context.Context
}

// ExportSpans exports spans in pieces. It goes on after a piece that was refused and returns the first error.
func (b *boundedExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.life, cancel)()
	var first error
	for len(spans) > 0 && ctx.Err() == nil {
		n := fitting(spans)
		if err := b.SpanExporter.ExportSpans(ctx, spans[:n]); err != nil && first == nil {
			first = err
		}
		spans = spans[n:]
	}
	if first == nil {
		first = ctx.Err()
	}
	return first
}

// fitting returns how many of the first spans go into one request, at least one.
func fitting(spans []sdktrace.ReadOnlySpan) int {
	size := 0
	for i, s := range spans {
		size += weigh(s)
		if i > 0 && size > maxBatch {
			return i
		}
	}
	return len(spans)
}
