package schema

import (
	"bytes"
	"fmt"
	"strings"
)

// MaxPayload is the size in bytes of the largest payload and the largest output of a call. What is above MaxInline
// lies in the object store.
const MaxPayload = 64 << 20

// Reference is sent in place of a call or a fact that is larger than MaxInline: its payload lies in the object store.
// A result has none; what is too much of its output is there instead.
type Reference struct {
	Payload
	Ref Blob `msgpack:"ref" json:"ref"` // of the whole payload
}

// Blob names bytes in the object store. The object is called <run>.<name>, so that it can go when its run goes.
type Blob struct {
	Run   string `msgpack:"run" json:"run"`                         // whose it is
	Name  string `msgpack:"blob" json:"blob"`                       // digest of the bytes
	Size  int64  `msgpack:"size" json:"size"`                       // their number
	Turn  int    `msgpack:"turn,omitempty" json:"turn,omitempty"`   // of a call
	Index int    `msgpack:"index,omitempty" json:"index,omitempty"` // of a call
}

// maxReference bounds the bytes of an encoded reference.
const maxReference = 512

// ParseReference tells whether a payload is a reference, and to what. It costs the payloads that are none next to
// nothing.
func ParseReference(data []byte) (Blob, bool) {
	if len(data) == 0 || len(data) > maxReference || !mayRefer(data) {
		return Blob{}, false
	}
	var r Reference
	if Decode(data, &r) != nil || !ValidID(r.Ref.Run) || !isDigest(r.Ref.Name) {
		return Blob{}, false
	}
	return r.Ref, true
}

// mayRefer looks at the beginning: a reference is a map of one or two keys, and no call or result is so small.
func mayRefer(data []byte) bool {
	if data[0]&0xf0 == 0x80 {
		return data[0] <= 0x82
	}
	return IsJSON(data) && bytes.Contains(data, []byte(`"ref"`))
}

func isDigest(s string) bool {
	if len(s) != 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// HeadTail returns the first and the last bytes of s, keep in all and both whole characters. s is longer.
func HeadTail(s string, keep int) (head, tail string) {
	from, to := keep/2, len(s)-(keep-keep/2)
	for from > 0 && s[from]&0xc0 == 0x80 {
		from--
	}
	for to < len(s) && s[to]&0xc0 == 0x80 {
		to++
	}
	return s[:from], s[to:]
}

// ToolReadOutput is the tool by which a model reads the rest of an output of which it got head and tail.
const ToolReadOutput = "read_output"

const (
	omittedHow = " bytes left out here; "
	omittedEnd = " ...]\n"
)

// OmittedMark is the line between head and tail of an output of c with size bytes, of which omitted are left out, the
// first at offset from. The whole is kept, and the line says how to read it, up to the byte kept; 0: it is not kept.
func OmittedMark(c *Call, from, omitted, size, kept int64) string {
	how := "they are not kept"
	switch {
	case kept >= size:
		how = fmt.Sprintf(`%s {"call":"%d.%d","offset":%d} reads them`, ToolReadOutput, c.Turn, c.Index, from)
	case kept > 0:
		how = fmt.Sprintf(`%s {"call":"%d.%d","offset":%d} reads them up to byte %d, the rest is not kept`, ToolReadOutput, c.Turn, c.Index, from, kept)
	}
	return fmt.Sprintf("\n[... %d of %d%s%s%s", omitted, size, omittedHow, how, omittedEnd)
}

// ForgetOmitted has the line of OmittedMark in an output say that the rest cannot be read, for a run that is another one.
func ForgetOmitted(output string) string {
	head, rest, marked := strings.Cut(output, omittedHow+ToolReadOutput)
	_, tail, ends := strings.Cut(rest, omittedEnd)
	if !marked || !ends {
		return output
	}
	return head + omittedHow + "they cannot be read any more" + omittedEnd + tail
}
