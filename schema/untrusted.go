package schema

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tinylib/msgp/msgp"
	"github.com/vmihailenco/msgpack/v5"
)

// Bounds of a payload. An element of a list is one byte on the wire and some hundred in memory, so that a hostile
// megabyte could ask for a third of a gigabyte.
const (
	smallPayload = 64 << 10 // bytes; the elements of a smaller one are few enough
	maxElements  = 64 << 10 // of a list
	maxLevels    = 64       // of nesting; a payload has five
)

func decodeMsgpack(data []byte, v any) error {
	if c := data[0]; c&0xf0 != 0x80 && c != 0xde && c != 0xdf {
		return errors.New("not a map")
	}
	if p, ok := v.(packed); ok {
		return p.unpack(data)
	}
	// msgpack/v5 allocates what a length header asks for, which ends the process on five hostile bytes. Skip walks
	// the whole value without allocating and refuses lengths that the bytes do not have.
	rest, err := msgp.Skip(data)
	if err != nil {
		return err
	}
	if len(rest) != 0 {
		return fmt.Errorf("%d bytes after the value", len(rest))
	}
	if len(data) > smallPayload {
		if _, err := checkBounds(data, 0); err != nil {
			return err
		}
	}
	return msgpack.Unmarshal(data, v)
}

// checkBounds walks one msgpack value, whose lengths Skip has checked, and returns what follows it.
func checkBounds(b []byte, level int) ([]byte, error) {
	n, rest, err := elements(b)
	if err != nil {
		return nil, err
	}
	if n > 0 && level >= maxLevels {
		return nil, fmt.Errorf("more than %d levels of nesting", maxLevels)
	}
	for ; n > 0; n-- {
		if rest, err = checkBounds(rest, level+1); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// elements returns how many values the value at the head of b consists of, and where they begin.
func elements(b []byte) (n uint64, rest []byte, err error) {
	var size uint32
	switch msgp.NextType(b) {
	case msgp.MapType:
		size, rest, err = msgp.ReadMapHeaderBytes(b)
		n = 2 * uint64(size)
	case msgp.ArrayType:
		size, rest, err = msgp.ReadArrayHeaderBytes(b)
		n = uint64(size)
	default:
		rest, err = msgp.Skip(b)
	}
	if err == nil && size > maxElements {
		err = fmt.Errorf("more than %d elements", maxElements)
	}
	return n, rest, err
}

// decodeJSON reads a payload that somebody wrote by hand or in another language. JSON text inside it may be an object
// of any size; the lists of the payload itself are bounded.
func decodeJSON(data []byte, v any) error {
	s := scanner{in: string(data), items: maxElements}
	s.space()
	if _, err := s.document(); err != nil {
		return fmt.Errorf("at byte %d %s", err.at, err.msg)
	}
	err := json.Unmarshal(data, v)
	if bad := new(json.UnmarshalTypeError); errors.As(err, &bad) { // its text has names of Go
		return fmt.Errorf("key %q holds a %s, which it cannot", bad.Field, bad.Value)
	}
	return err
}
