package dialect

import (
	"maps"
	"slices"
	"strings"

	"github.com/jetcrew/jetcrew/schema"
)

// maxName is the length that both providers allow for the name of a tool, in bytes.
const maxName = 64

// Names maps the names of tools to names a provider takes, [a-zA-Z0-9_-]{1,64}, and back. A legal name stays as it
// is; another is cleaned and gets a suffix from its digest, so that it is the same in every request and no two tools
// share one.
type Names struct {
	out map[string]string
	in  map[string]string
}

// NewNames returns the mapping for one request: for its tools and for the calls in its history.
func NewNames(tools []schema.Tool, history []schema.Message) *Names {
	all := map[string]bool{}
	for _, t := range tools {
		all[t.Name] = true
	}
	for _, m := range history {
		for _, c := range m.Calls {
			all[c.Name] = true
		}
	}
	n := &Names{out: map[string]string{}, in: map[string]string{}}
	sorted := slices.Sorted(maps.Keys(all))
	for _, name := range sorted {
		if legalName(name) {
			n.put(name, name) // a legal name is never taken from its tool by another's suffix
		}
	}
	for _, name := range sorted {
		if !legalName(name) {
			n.put(name, n.free(name))
		}
	}
	return n
}

// Encode returns the provider's name of a tool.
func (n *Names) Encode(name string) string {
	if out, ok := n.out[name]; ok {
		return out
	}
	return n.free(name)
}

// Decode returns the tool that a provider's name stands for; a name that stands for none is returned as it is.
func (n *Names) Decode(name string) string {
	if in, ok := n.in[name]; ok {
		return in
	}
	return name
}

func (n *Names) put(name, out string) {
	n.out[name] = out
	n.in[out] = name
}

// free returns the encoded form of name, with a longer digest in the case that somebody's tool has just that name.
func (n *Names) free(name string) string {
	for size := 8; ; size += 6 {
		d := digest(name, min(size, 50))
		out := cleanName(name, maxName-1-len(d)) + "_" + d
		if _, taken := n.in[out]; !taken || size > 50 {
			return out
		}
	}
}

func legalName(s string) bool { return len(s) <= maxName && s != "" && IDRule{OK: WordChar}.legal(s) }

// cleanName returns at most max bytes of s, with one '_' for each run of characters that are not allowed.
func cleanName(s string, max int) string {
	var b strings.Builder
	gap := false
	for i := 0; i < len(s) && b.Len() < max-1; i++ {
		if !WordChar(s[i]) {
			gap = b.Len() > 0
			continue
		}
		if gap {
			b.WriteByte('_')
			gap = false
		}
		b.WriteByte(s[i])
	}
	if b.Len() == 0 {
		return "tool"
	}
	return b.String()
}
