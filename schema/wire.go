package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
)

// Version is the version of the wire contract, the key "v" of every payload.
const Version = 1

// MaxInline is the size in bytes up to which a call or a fact travels in a message; see MaxPayload.
const MaxInline = 256 << 10

// ErrPayload is wrapped by every error of Decode: the bytes are not a payload of this contract.
var ErrPayload = errors.New("bad payload")

// Payload is embedded in every payload type: it carries the contract's version.
type Payload struct {
	V int `msgpack:"v" json:"v"`
}

// Encodable is a pointer to a payload type of this package.
type Encodable interface{ stamp() }

func (p *Payload) stamp()       { p.V = Version }
func (p *Payload) version() int { return p.V }

// Encode returns the msgpack form of a payload, a pointer to a struct that embeds Payload: a map with the keys of
// the msgpack tags in the order of the struct. It sets the payload's version.
func Encode(v Encodable) ([]byte, error) {
	v.stamp()
	if p, ok := v.(packing); ok {
		return p.pack(), nil
	}
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	var buf bytes.Buffer
	enc.Reset(&buf)
	enc.UseCompactInts(true)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return buf.Bytes(), nil
}

// Decode reads a payload into v, which is a pointer to one of this package's payload types. It takes msgpack and
// JSON; the two cannot be confused, since a msgpack map never begins with '{' or white space. Unknown keys are
// ignored. Hostile lengths, truncated bytes and, in JSON, a key that occurs twice are errors that wrap ErrPayload.
func Decode(data []byte, v any) (err error) {
	if len(data) == 0 {
		return fmt.Errorf("%w: empty", ErrPayload)
	}
	defer func() {
		// The msgpack decoder is reflective and the bytes are a stranger's: a panic in it must stay a bad payload.
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrPayload, p)
		}
	}()
	if IsJSON(data) {
		err = decodeJSON(data, v)
	} else {
		err = decodeMsgpack(data, v)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPayload, err)
	}
	if p, ok := v.(interface{ version() int }); ok && p.version() > Version {
		return fmt.Errorf("%w: version %d, this program reads %d", ErrPayload, p.version(), Version)
	}
	return nil
}

// IsJSON tells whether a payload is JSON text rather than msgpack.
func IsJSON(data []byte) bool {
	t := bytes.TrimLeft(data, " \t\r\n")
	return len(t) > 0 && t[0] == '{'
}

// JSONText is JSON text inside a payload: a string in msgpack; in JSON a string or, for what is written by hand,
// the value itself.
type JSONText string

// UnmarshalJSON takes a JSON string that holds JSON text, or the JSON value itself.
func (t *JSONText) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(t))
	}
	if string(b) == "null" {
		*t = ""
		return nil
	}
	var buf bytes.Buffer
	if err := json.Compact(&buf, b); err != nil {
		return err
	}
	*t = JSONText(buf.String())
	return nil
}

// CleanText returns s as valid UTF-8: each run of bytes that are no character becomes one U+FFFD. Text that a tool or
// a model gives passes through it once, where it enters; a lone surrogate in a history makes a provider refuse
// every later request.
func CleanText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
