package dialect

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// IDRule is what a provider takes as the id of a tool call.
type IDRule struct {
	Max int             // bytes
	OK  func(byte) bool // characters
}

// WordChar tells whether c is one of A-Z, a-z, 0-9, '_' and '-'.
func WordChar(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// PrintableChar tells whether c is visible ASCII.
func PrintableChar(c byte) bool { return c > ' ' && c < 0x7f }

// Fit returns id if the provider takes it, else a replacement: the part of its beginning that fits, and a digest of
// the whole. The same id gives the same replacement on a call and on its result, in every run; two ids that differ
// anywhere differ in their digests.
func (r IDRule) Fit(id string) string {
	if id != "" && len(id) <= r.Max && r.legal(id) {
		return id
	}
	d := digest(id, 26)
	var b strings.Builder
	for i := 0; i < len(id) && b.Len() < r.Max-len(d)-1; i++ {
		if r.OK(id[i]) {
			b.WriteByte(id[i])
		}
	}
	return b.String() + "_" + d
}

func (r IDRule) legal(id string) bool {
	for i := range len(id) {
		if !r.OK(id[i]) {
			return false
		}
	}
	return true
}

// digest returns n characters of the lower-case base32 of the SHA-256 of s; 26 of them hold 130 bits.
func digest(s string, n int) string {
	sum := sha256.Sum256([]byte(s))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))[:n]
}
