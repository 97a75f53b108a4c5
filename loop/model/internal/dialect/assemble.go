package dialect

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/jetcrew/jetcrew/schema"
)

// ErrAmbiguous is wrapped by the error of a stream whose pieces can be put together in more than one way. Guessing
// could run a call that the model never made.
var ErrAmbiguous = errors.New("ambiguous stream of tool calls")

// maxStreamed bounds the argument text of one answer, in bytes as received.
const maxStreamed = 64 << 20

// Piece is a part of a tool call as a stream gives it. Every field may be missing: real endpoints omit the index,
// repeat it for two calls, change it between the pieces of one call, or send no id.
type Piece struct {
	Index *int
	ID    string
	Name  string
	Args  Str
}

// Assembler puts the pieces of streamed calls together. It is a plain value without goroutines; the zero Assembler
// has no calls.
//
// A piece belongs to the call that its id names, else to the call its index is bound to, else to the call that was
// opened last; a name opens a call. Where two calls could be meant, it is an error.
type Assembler struct {
	calls []*partial
	bound map[int]*partial
	last  *partial // touched last
	chunk int      // number of the current chunk
	size  int
	err   error
}

// partial is a call that is still arriving.
type partial struct {
	id, name string
	index    *int
	chunk    int // in which it was opened
	args     arguments
}

// Chunk adds the pieces of one chunk of the stream, in their order. The first error stays.
func (a *Assembler) Chunk(pieces ...Piece) error {
	a.chunk++
	for _, p := range pieces {
		if a.err == nil {
			a.err = a.add(p)
		}
	}
	return a.err
}

// Calls returns the calls in the order of their indexes where all have one of their own, else in the order in which
// they were opened.
func (a *Assembler) Calls() ([]schema.RawCall, error) {
	if a.err != nil {
		return nil, a.err
	}
	if a.indexed() {
		slices.SortStableFunc(a.calls, func(x, y *partial) int { return *x.index - *y.index })
	}
	var out []schema.RawCall
	for _, c := range a.calls {
		out = append(out, schema.RawCall{ID: c.id, Name: c.name, Args: Repair(c.args.text())})
	}
	return out, nil
}

func (a *Assembler) indexed() bool {
	seen := map[int]bool{}
	for _, c := range a.calls {
		if c.index == nil || seen[*c.index] {
			return false
		}
		seen[*c.index] = true
	}
	return true
}

func (a *Assembler) add(p Piece) error {
	if a.size += len(p.Args); a.size > maxStreamed {
		return fmt.Errorf("tool calls of more than %d bytes", maxStreamed)
	}
	c, err := a.route(p)
	if err != nil || c == nil {
		return err
	}
	if c.id == "" {
		c.id = p.ID
	}
	if c.name == "" {
		c.name = p.Name
	}
	c.args.add(p.Args)
	a.last = c
	return nil
}

// route finds the call that p belongs to, or opens one; nil: p says nothing.
func (a *Assembler) route(p Piece) (*partial, error) {
	var c *partial
	if p.Index != nil {
		c = a.bound[*p.Index]
	}
	switch {
	case p.ID != "":
		return a.identified(p, c)
	case c != nil:
		return a.continued(p, c)
	case p.Name != "" && (p.Index != nil || a.last == nil):
		return a.open(p), nil
	case p.Name != "":
		return a.named(p, a.last)
	default:
		return a.orphan(p)
	}
}

func (a *Assembler) open(p Piece) *partial {
	c := &partial{index: p.Index, chunk: a.chunk}
	a.calls = append(a.calls, c)
	a.bind(p.Index, c)
	return c
}

func (a *Assembler) bind(index *int, c *partial) {
	if index == nil {
		return
	}
	if a.bound == nil {
		a.bound = map[int]*partial{}
	}
	a.bound[*index] = c
}

// identified routes a piece that has an id; c is the call its index is bound to, if any.
func (a *Assembler) identified(p Piece, c *partial) (*partial, error) {
	m := a.withID(p, c)
	switch {
	case m != nil && p.Name != "" && m.another(p):
		return a.open(p), nil // some models give one id to several calls
	case m != nil && c != nil && m != c && p.Name == "":
		return nil, fmt.Errorf("%w: a piece has the id of one call and the index of another", ErrAmbiguous)
	case m != nil:
		return m, nil
	case c == nil || c.id != "" && p.Name != "" && !(c.name == p.Name && c.unfinished()):
		return a.open(p), nil
	case c.id == "" && p.Name == "", c.id == "" && c.name == p.Name && c.args.empty():
		return c, nil // the id comes late
	case c.id == "":
		return a.open(p), nil
	case p.Name == "" && (!c.args.complete() || blank(p.Args)):
		return c, nil // an endpoint that makes up an id for each piece
	default:
		return nil, fmt.Errorf("%w: the id changes within call %q", ErrAmbiguous, c.name)
	}
}

func (a *Assembler) withID(p Piece, c *partial) *partial {
	if c != nil && c.id == p.ID {
		return c
	}
	if p.Name != "" && p.Index != nil {
		return nil // the index tells two calls with one id apart
	}
	for _, m := range slices.Backward(a.calls) {
		if m.id == p.ID {
			return m
		}
	}
	return nil
}

// continued routes a piece without an id whose index is bound to c.
func (a *Assembler) continued(p Piece, c *partial) (*partial, error) {
	if p.Name != "" {
		return a.named(p, c)
	}
	for _, r := range a.calls {
		if r != c && r.index != nil && *r.index == *p.Index && a.rivals(r, c) {
			return nil, fmt.Errorf("%w: calls %q and %q share index %d", ErrAmbiguous, r.name, c.name, *p.Index)
		}
	}
	return c, nil
}

// named routes a piece with a name but without an id that may belong to c or be a call of its own.
func (a *Assembler) named(p Piece, c *partial) (*partial, error) {
	switch {
	case c.name == "":
		return c, nil
	case c.args.empty():
		return a.renamed(p, c)
	case c.name == p.Name && (blank(p.Args) || c.args.grows(p.Args) || !c.args.complete()):
		return c, nil // the header is repeated in every piece
	case c.args.complete():
		return a.open(p), nil
	default:
		return nil, fmt.Errorf("%w: %q begins while %q is not complete, both without an id", ErrAmbiguous, p.Name, c.name)
	}
}

// renamed routes a second name for a call without arguments: the same again, more of it, or another call.
func (a *Assembler) renamed(p Piece, c *partial) (*partial, error) {
	switch {
	case c.name == p.Name && (p.Index != nil || !blank(p.Args)):
		return c, nil
	case p.Index != nil && bytes.HasPrefix([]byte(p.Name), []byte(c.name)):
		c.name = p.Name
		return c, nil
	case p.Index != nil && c.id != "":
		c.name += p.Name
		return c, nil
	case p.Index == nil && (c.name != p.Name || c.chunk == a.chunk):
		return a.open(p), nil
	default:
		return nil, fmt.Errorf("%w: %q after %q, both without an id", ErrAmbiguous, p.Name, c.name)
	}
}

// orphan routes a piece that has neither id nor name and no index that is known.
func (a *Assembler) orphan(p Piece) (*partial, error) {
	if blank(p.Args) {
		return nil, nil
	}
	if a.last == nil {
		return nil, fmt.Errorf("%w: arguments before any call", ErrAmbiguous)
	}
	for _, r := range a.calls {
		if r != a.last && a.rivals(r, a.last) {
			return nil, fmt.Errorf("%w: arguments that may belong to %q or to %q", ErrAmbiguous, r.name, a.last.name)
		}
	}
	if a.last.args.complete() && !a.last.args.grows(p.Args) {
		return nil, fmt.Errorf("%w: more arguments after the complete call %q", ErrAmbiguous, a.last.name)
	}
	a.bind(p.Index, a.last)
	return a.last, nil
}

// rivals tells whether a piece that seems to belong to c may as well belong to r. Within the chunk that opened c it
// may not: entries of one chunk follow each other.
func (a *Assembler) rivals(r, c *partial) bool {
	return c.chunk != a.chunk && (r.chunk == c.chunk || !r.args.empty()) && !r.args.complete()
}

// another tells whether p begins a further call with the id of c.
func (c *partial) another(p Piece) bool {
	if c.name != "" && c.name != p.Name && c.args.empty() {
		return true
	}
	return c.args.complete() && !blank(p.Args) && !c.args.grows(p.Args)
}

func (c *partial) unfinished() bool { return !c.args.empty() && !c.args.complete() }

func blank(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }
