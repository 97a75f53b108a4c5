package schema

import (
	"slices"

	"github.com/tinylib/msgp/msgp"
)

// A turn is written once and hardly ever read, so only its encoder is by hand.

func (t *Turn) pack() []byte {
	size := 256 + len(t.Text)
	for i := range t.Calls {
		size += 256 + len(t.Calls[i].Args) + len(t.Calls[i].Raw) + len(t.Calls[i].Bound)
	}
	p := newPacker(size)
	p.int("v", int64(t.V))
	p.int("n", int64(t.N))
	p.int("own", int64(t.Own))
	p.int("say", int64(t.Say))
	p.optInt("fold", int64(t.Fold))
	p.optStr("model", t.Model)
	p.optStr("text", t.Text)
	if t.Items != nil {
		p.optMap("items", t.Items.pack)
	}
	p.optStr("finish", string(t.Finish))
	p.key("usage")
	p.entries(t.Usage.pack)
	if len(t.Calls) > 0 {
		p.key("calls")
		p.b = msgp.AppendArrayHeader(p.b, uint32(len(t.Calls)))
		for i := range t.Calls {
			p.entries(t.Calls[i].pack)
		}
	}
	p.optInt("started_ms", t.StartedMS)
	p.optInt("ended_ms", t.EndedMS)
	return p.bytes()
}

func (i *Items) pack(p *packer) {
	p.str("provider", i.Provider)
	p.key("data")
	if i.Data == nil {
		p.b = msgp.AppendNil(p.b)
		return
	}
	p.b = msgp.AppendBytes(p.b, i.Data)
}

func (u *Usage) pack(p *packer) {
	p.optInt("input", u.Input)
	p.optInt("output", u.Output)
	p.optInt("cache_read", u.CacheRead)
	p.optInt("cache_write", u.CacheWrite)
}

func (c *TurnCall) pack(p *packer) {
	p.str("label", c.Label)
	p.str("tool", c.Tool)
	p.optStr("target", c.Target)
	p.optStr("source", c.Source)
	p.optStr("raw", c.Raw)
	p.str("args", string(c.Args))
	p.optStr("bound", string(c.Bound))
	p.str("queue", c.Queue)
	p.optStr("effect", c.Effect)
	p.optTrue("idempotent", c.Idempotent)
	p.optInt("timeout_ms", c.TimeoutMS)
	p.optInt("within_ms", c.WithinMS)
	p.optStr("digest", c.Digest)
	p.optStrs("notes", c.Notes)
	p.optTrue("aborts", c.Aborts)
	p.optMap("budget", c.Budget.pack)
	p.key("decision")
	p.entries(c.Decision.pack)
}

func (d *Decision) pack(p *packer) {
	p.str("action", string(d.Action))
	p.optStr("rule", d.Rule)
	p.optStr("text", d.Text)
	p.optStr("type", string(d.Type))
}

// entries writes a map as a value.
func (p *packer) entries(write func(*packer)) {
	head, n := len(p.b), p.n
	p.b = append(p.b, 0)
	p.n = 0
	write(p)
	if p.n < 16 {
		p.b[head] = 0x80 | byte(p.n)
	} else {
		p.b = slices.Insert(p.b, head+1, byte(p.n>>8), byte(p.n))
		p.b[head] = 0xde
	}
	p.n = n
}
