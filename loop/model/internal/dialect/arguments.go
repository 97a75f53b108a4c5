package dialect

import (
	"bytes"
	"encoding/json"
)

// arguments collects the argument text of one call. Most streams send deltas; some send the whole text so far each
// time, or repeat the whole at the end, or put {} before it. Which of them it was shows only in the end: the joined
// deltas count if they are JSON, since no split of JSON text can look like anything else.
type arguments struct {
	joined []byte // every piece
	grown  []byte // the same, where a piece that begins with all before it replaces it
	first  int    // length of the first piece
}

func (a *arguments) add(piece []byte) {
	if len(piece) == 0 {
		return
	}
	if len(a.joined) == 0 {
		a.first = len(piece)
	}
	a.joined = append(a.joined, piece...)
	if a.grows(piece) {
		a.grown = bytes.Clone(piece)
		return
	}
	a.grown = append(a.grown, piece...)
}

// grows tells whether piece repeats all that came before it.
func (a *arguments) grows(piece []byte) bool {
	return len(a.grown) > 0 && bytes.HasPrefix(piece, a.grown)
}

func (a *arguments) empty() bool { return len(bytes.TrimSpace(a.joined)) == 0 }

// text returns what the pieces say: JSON if there is a reading of them that is.
func (a *arguments) text() []byte {
	if json.Valid(a.joined) {
		return a.joined
	}
	if isObject(a.grown) {
		return a.grown
	}
	if rest := a.joined[a.first:]; string(bytes.TrimSpace(a.joined[:a.first])) == "{}" && isObject(rest) {
		return rest
	}
	return a.joined
}

// complete tells whether the text is an object already, so that nothing can follow it.
func (a *arguments) complete() bool {
	t := bytes.TrimRight(a.joined, " \t\r\n")
	return len(t) > 0 && t[len(t)-1] == '}' && isObject(a.text())
}

func isObject(b []byte) bool {
	t := bytes.TrimLeft(b, " \t\r\n")
	return len(t) > 0 && t[0] == '{' && json.Valid(t)
}
