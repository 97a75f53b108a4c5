package schema

import (
	"encoding/binary"

	"github.com/tinylib/msgp/msgp"
)

// Calls and results are encoded and decoded by hand, turns encoded: each crosses the bus once per tool call, and the reflective codec
// takes more than twice as long (BenchmarkEncode, BenchmarkDecode). The bytes are the same, which a test holds for every
// field; all other payloads are rare enough for reflection.

// packing is a payload with an encoder of its own.
type packing interface{ pack() []byte }

// packed is a payload with a codec of its own.
type packed interface {
	packing
	unpack(data []byte) error
}

func (c *Call) pack() []byte {
	p := newPacker(320 + len(c.Args) + len(c.Bound))
	p.int("v", int64(c.V))
	p.str("run", c.Run)
	p.int("turn", int64(c.Turn))
	p.int("index", int64(c.Index))
	p.optStr("label", c.Label)
	p.str("tool", c.Tool)
	p.optStr("as", c.As)
	p.optStr("source", c.Source)
	p.str("args", string(c.Args))
	p.optStr("bound", string(c.Bound))
	p.optStr("agent", c.Agent)
	p.optMap("principal", c.Principal.pack)
	p.optStr("effect", c.Effect)
	p.optTrue("idempotent", c.Idempotent)
	p.optInt("timeout_ms", c.TimeoutMS)
	p.optStr("digest", c.Digest)
	p.optInt("depth", int64(c.Depth))
	p.optStrs("lineage", c.Lineage)
	p.optMap("budget", c.Budget.pack)
	p.optStr("previous", c.Previous)
	return p.bytes()
}

func (q *Principal) pack(p *packer) {
	p.optStr("id", q.ID)
	p.optStr("tenant", q.Tenant)
	p.optStrs("scopes", q.Scopes)
}

func (q *Budget) pack(p *packer) {
	p.optInt("steps", int64(q.Steps))
	p.optInt("tokens", q.Tokens)
	if q.Cost != 0 {
		p.key("cost")
		p.b = msgp.AppendFloat64(p.b, q.Cost)
	}
}

func (r *Result) pack() []byte {
	p := newPacker(256 + len(r.Output))
	p.int("v", int64(r.V))
	p.str("run", r.Run)
	p.int("turn", int64(r.Turn))
	p.int("index", int64(r.Index))
	p.key("ok")
	p.b = msgp.AppendBool(p.b, r.OK)
	p.str("output", r.Output)
	if r.Error != nil {
		p.optMap("error", r.Error.pack)
	}
	p.optTrue("aborts", r.Aborts)
	p.optStr("blob", r.Blob)
	p.optInt("size", r.Size)
	p.optStr("worker", r.Worker)
	if r.Delivery != 0 {
		p.key("delivery")
		p.b = msgp.AppendUint64(p.b, r.Delivery)
	}
	p.optInt("queued_ms", r.QueuedMS)
	p.optInt("started_ms", r.StartedMS)
	p.optInt("ended_ms", r.EndedMS)
	p.optMap("spent", r.Spent.pack)
	return p.bytes()
}

func (s *Spent) pack(p *packer) {
	p.optInt("steps", int64(s.Steps))
	p.optMap("usage", s.Usage.pack)
	if s.Cost != 0 {
		p.key("cost")
		p.b = msgp.AppendFloat64(p.b, s.Cost)
	}
	p.optInt("attempts", int64(s.Attempts))
}

func (e *Error) pack(p *packer) {
	p.str("type", string(e.Type))
	p.str("message", e.Message)
}

// packer appends the entries of one map. Its first three bytes are room for the header, which is known at the end.
type packer struct {
	b []byte
	n int
}

const mapHeader = 3

func newPacker(size int) *packer { return &packer{b: make([]byte, mapHeader, mapHeader+size)} }

// bytes returns the map with the shortest header.
func (p *packer) bytes() []byte {
	if p.n < 16 {
		p.b[2] = 0x80 | byte(p.n)
		return p.b[2:]
	}
	p.b[0] = 0xde
	binary.BigEndian.PutUint16(p.b[1:], uint16(p.n))
	return p.b
}

func (p *packer) key(k string) {
	p.n++
	p.b = msgp.AppendString(p.b, k)
}

func (p *packer) str(k, v string) {
	p.key(k)
	p.b = msgp.AppendString(p.b, v)
}

func (p *packer) int(k string, v int64) {
	p.key(k)
	if v < 0 {
		p.b = msgp.AppendInt64(p.b, v)
		return
	}
	p.b = msgp.AppendUint64(p.b, uint64(v))
}

// optStr and the other opt methods write nothing for the zero value, as omitempty does.
func (p *packer) optStr(k, v string) {
	if v != "" {
		p.str(k, v)
	}
}

func (p *packer) optInt(k string, v int64) {
	if v != 0 {
		p.int(k, v)
	}
}

func (p *packer) optTrue(k string, v bool) {
	if v {
		p.key(k)
		p.b = msgp.AppendBool(p.b, v)
	}
}

func (p *packer) optStrs(k string, v []string) {
	if len(v) == 0 {
		return
	}
	p.key(k)
	p.b = msgp.AppendArrayHeader(p.b, uint32(len(v)))
	for _, s := range v {
		p.b = msgp.AppendString(p.b, s)
	}
}

// optMap writes a map of less than 16 entries, nothing if there are none.
func (p *packer) optMap(k string, write func(*packer)) {
	before := *p
	p.key(k)
	head := len(p.b)
	p.entries(write)
	if p.b[head] == 0x80 {
		p.b, p.n = before.b, before.n
	}
}
