package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Load reads transcripts, one JSON object per line; blank lines are skipped and unknown keys ignored. An error names
// the line. Two transcripts with one id are an error.
func Load(r io.Reader) ([]Transcript, error) {
	var out []Transcript
	seen := map[string]int{}
	in := bufio.NewReader(r)
	for line := 1; ; line++ {
		data, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("transcripts: line %d: %w", line, err)
		}
		if len(bytes.TrimSpace(data)) > 0 {
			t, bad := parse(data)
			if bad != nil {
				return nil, fmt.Errorf("transcripts: line %d: %w", line, bad)
			}
			if first, ok := seen[t.ID]; ok {
				return nil, fmt.Errorf("transcripts: line %d: id %q stands in line %d already", line, t.ID, first)
			}
			seen[t.ID] = line
			out = append(out, t)
		}
		if err != nil {
			return out, nil
		}
	}
}

func parse(line []byte) (Transcript, error) {
	var t Transcript
	if err := json.Unmarshal(line, &t); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return t, fmt.Errorf("byte %d: %w", syntax.Offset, err)
		}
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return t, fmt.Errorf("%s cannot be of the JSON type %s", cmp.Or(wrong.Field, "a transcript"), wrong.Value)
		}
		return t, err
	}
	return t, t.check()
}

// Write writes transcripts as Load reads them.
func Write(w io.Writer, list ...Transcript) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, t := range list {
		if err := enc.Encode(t); err != nil {
			return fmt.Errorf("write transcript %q: %w", t.ID, err)
		}
	}
	return nil
}
