package view

import (
	"encoding/json"
	"fmt"
	"strings"
)

// note is what the program itself says in a stream of events.
type note struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// jsonLine returns v as JSON on one line. The C1 control characters, which the encoder leaves as they are and some
// terminals obey, are escaped: the value stays the same.
func jsonLine(v any) string {
	data, err := json.Marshal(v)
	if err != nil { // events hold nothing that cannot be encoded
		data, _ = json.Marshal(note{Type: "error", Text: err.Error()})
	}
	line := string(data)
	if !strings.ContainsFunc(line, isC1) {
		return line
	}
	var b strings.Builder
	for _, r := range line {
		if isC1(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isC1(r rune) bool { return r >= 0x7f && r < 0xa0 }
