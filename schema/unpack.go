package schema

import (
	"fmt"

	"github.com/tinylib/msgp/msgp"
)

func (c *Call) unpack(data []byte) error {
	u := unpacker{b: data}
	for n := u.mapLen(); n > 0 && u.err == nil; n-- {
		key := u.key()
		if u.null() {
			continue
		}
		switch string(key) {
		case "v":
			c.V = int(u.int(key))
		case "run":
			c.Run = u.str(key)
		case "turn":
			c.Turn = int(u.int(key))
		case "index":
			c.Index = int(u.int(key))
		case "label":
			c.Label = u.str(key)
		case "tool":
			c.Tool = u.str(key)
		case "as":
			c.As = u.str(key)
		case "source":
			c.Source = u.str(key)
		case "args":
			c.Args = JSONText(u.str(key))
		case "bound":
			c.Bound = JSONText(u.str(key))
		case "agent":
			c.Agent = u.str(key)
		case "principal":
			c.Principal.unpack(&u)
		case "effect":
			c.Effect = u.str(key)
		case "idempotent":
			c.Idempotent = u.bool(key)
		case "timeout_ms":
			c.TimeoutMS = u.int(key)
		case "digest":
			c.Digest = u.str(key)
		case "depth":
			c.Depth = int(u.int(key))
		case "lineage":
			c.Lineage = u.strs(key)
		case "budget":
			c.Budget.unpack(&u)
		case "previous":
			c.Previous = u.str(key)
		default:
			u.skip()
		}
	}
	return u.end()
}

func (q *Principal) unpack(u *unpacker) {
	*q = Principal{}
	for n := u.mapLen(); n > 0 && u.err == nil; n-- {
		key := u.key()
		if u.null() {
			continue
		}
		switch string(key) {
		case "id":
			q.ID = u.str(key)
		case "tenant":
			q.Tenant = u.str(key)
		case "scopes":
			q.Scopes = u.strs(key)
		default:
			u.skip()
		}
	}
}

func (q *Budget) unpack(u *unpacker) {
	*q = Budget{}
	for n := u.mapLen(); n > 0 && u.err == nil; n-- {
		key := u.key()
		if u.null() {
			continue
		}
		switch string(key) {
		case "steps":
			q.Steps = int(u.int(key))
		case "tokens":
			q.Tokens = u.int(key)
		case "cost":
			q.Cost = u.float(key)
		default:
			u.skip()
		}
	}
}

func (r *Result) unpack(data []byte) error {
	u := unpacker{b: data}
	for n := u.mapLen(); n > 0 && u.err == nil; n-- {
		key := u.key()
		if u.null() {
			continue
		}
		switch string(key) {
		case "v":
			r.V = int(u.int(key))
		case "run":
			r.Run = u.str(key)
		case "turn":
			r.Turn = int(u.int(key))
		case "index":
			r.Index = int(u.int(key))
		case "ok":
			r.OK = u.bool(key)
		case "output":
			r.Output = u.str(key)
		case "error":
			r.Error = unpackError(&u)
		case "aborts":
			r.Aborts = u.bool(key)
		case "blob":
			r.Blob = u.str(key)
		case "size":
			r.Size = u.int(key)
		case "worker":
			r.Worker = u.str(key)
		case "delivery":
			r.Delivery = u.uint(key)
		case "queued_ms":
			r.QueuedMS = u.int(key)
		case "started_ms":
			r.StartedMS = u.int(key)
		case "ended_ms":
			r.EndedMS = u.int(key)
		case "spent":
			r.Spent.unpack(&u)
		default:
			u.skip()
		}
	}
	return u.end()
}

func (s *Spent) unpack(u *unpacker) {
	*s = Spent{}
	for n := u.mapLen(); n > 0 && u.err == nil; n-- {
		key := u.key()
		if u.null() {
			continue
		}
		switch string(key) {
		case "steps":
			s.Steps = int(u.int(key))
		case "usage":
			s.Usage.unpack(u)
		case "cost":
			s.Cost = u.float(key)
		case "attempts":
			s.Attempts = int(u.int(key))
		default:
			u.skip()
		}
	}
}

func (q *Usage) unpack(u *unpacker) {
	*q = Usage{}
	for n := u.mapLen(); n > 0 && u.err == nil; n-- {
		key := u.key()
		if u.null() {
			continue
		}
		switch string(key) {
		case "input":
			q.Input = u.int(key)
		case "output":
			q.Output = u.int(key)
		case "cache_read":
			q.CacheRead = u.int(key)
		case "cache_write":
			q.CacheWrite = u.int(key)
		default:
			u.skip()
		}
	}
}

func unpackError(u *unpacker) *Error {
	e := &Error{}
	for n := u.mapLen(); n > 0 && u.err == nil; n-- {
		key := u.key()
		if u.null() {
			continue
		}
		switch string(key) {
		case "type":
			e.Type = ErrorType(u.str(key))
		case "message":
			e.Message = u.str(key)
		default:
			u.skip()
		}
	}
	return e
}

// unpacker reads msgpack values one after another; after an error it reads zero values. It allocates no more than
// what the bytes hold. A key whose value is null counts as absent, as in JSON; text may be a string or binary.
type unpacker struct {
	b   []byte
	err error
}

// end returns the first error, or that bytes are left.
func (u *unpacker) end() error {
	if u.err == nil && len(u.b) > 0 {
		return fmt.Errorf("%d bytes after the value", len(u.b))
	}
	return u.err
}

func (u *unpacker) fail(key []byte, err error) {
	if u.err == nil && err != nil {
		u.err = fmt.Errorf("key %q: %w", Cut(string(key), maxQuoted), err)
	}
}

// null reads a null if that is next.
func (u *unpacker) null() bool {
	if u.err == nil && msgp.IsNil(u.b) {
		u.b = u.b[1:]
		return true
	}
	return false
}

func (u *unpacker) mapLen() (n uint32) {
	if u.err != nil {
		return 0
	}
	n, u.b, u.err = msgp.ReadMapHeaderBytes(u.b)
	return n
}

func (u *unpacker) key() (k []byte) {
	k, u.b, u.err = msgp.ReadMapKeyZC(u.b)
	return k
}

func (u *unpacker) skip() {
	if u.err == nil {
		u.b, u.err = msgp.Skip(u.b)
	}
}

func (u *unpacker) str(key []byte) string {
	if u.err != nil || u.null() {
		return ""
	}
	var s []byte
	var err error
	if msgp.NextType(u.b) == msgp.BinType {
		s, u.b, err = msgp.ReadBytesZC(u.b)
	} else {
		s, u.b, err = msgp.ReadStringZC(u.b)
	}
	u.fail(key, err)
	return string(s)
}

func (u *unpacker) int(key []byte) (n int64) {
	if u.err != nil {
		return 0
	}
	var err error
	n, u.b, err = msgp.ReadInt64Bytes(u.b)
	u.fail(key, err)
	return n
}

func (u *unpacker) uint(key []byte) (n uint64) {
	if u.err != nil {
		return 0
	}
	var err error
	n, u.b, err = msgp.ReadUint64Bytes(u.b)
	u.fail(key, err)
	return n
}

// float reads a number; a writer in another language sends a whole one as an integer.
func (u *unpacker) float(key []byte) (f float64) {
	switch {
	case u.err != nil:
		return 0
	case msgp.NextType(u.b) == msgp.IntType || msgp.NextType(u.b) == msgp.UintType:
		return float64(u.int(key))
	}
	var err error
	f, u.b, err = msgp.ReadFloat64Bytes(u.b)
	u.fail(key, err)
	return f
}

func (u *unpacker) bool(key []byte) (v bool) {
	if u.err != nil {
		return false
	}
	var err error
	v, u.b, err = msgp.ReadBoolBytes(u.b)
	u.fail(key, err)
	return v
}

func (u *unpacker) strs(key []byte) []string {
	if u.err != nil {
		return nil
	}
	n, rest, err := msgp.ReadArrayHeaderBytes(u.b)
	if u.b = rest; err == nil && uint64(n) > uint64(len(rest)) {
		err = msgp.ErrShortBytes
	}
	if u.fail(key, err); err != nil {
		return nil
	}
	list := make([]string, 0, n)
	for ; n > 0 && u.err == nil; n-- {
		list = append(list, u.str(key))
	}
	return list
}
