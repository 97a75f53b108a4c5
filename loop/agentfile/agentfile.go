package agentfile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/jetcrew/jetcrew/schema"
)

// Version is what the field version of an agent file says.
const Version = "jetcrew/v1"

// MaxSize bounds an agent file, in bytes.
const MaxSize = 128 << 10

// Load reads the agent file at path. Problems of its content are an *Error; others come from the file system.
func Load(path string) (schema.AgentSpec, error) {
	f, err := os.Open(path)
	if err != nil {
		return schema.AgentSpec{}, fmt.Errorf("agent file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return schema.AgentSpec{}, fmt.Errorf("agent file: %w", err)
	}
	return Parse(path, data)
}

// Parse reads an agent file from data; name stands for the file in errors. What the file leaves out has its default:
// 20 steps, 5 minutes, any number of tokens, calls one after another. All problems that were found are in the *Error it
// returns. It never panics, whatever data holds.
func Parse(name string, data []byte) (spec schema.AgentSpec, err error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	src := newSource(name, data[:min(len(data), MaxSize)])
	switch {
	case len(data) > MaxSize:
		return spec, src.fail(src.problem(1, 1, "the file is larger than %d KiB", MaxSize>>10))
	case !utf8.Valid(data):
		line := 1 + bytes.Count(data[:invalidAt(data)], []byte("\n"))
		return spec, src.fail(src.problem(line, 1, "the text is not valid UTF-8"))
	}
	root, problem := parse(src, data)
	if problem != nil {
		return spec, src.fail(*problem)
	}
	r := newReader(src)
	if r.anchors(root) {
		spec = r.agent(root)
	}
	if len(r.problems) > 0 {
		return schema.AgentSpec{}, src.fail(r.problems...)
	}
	return spec, nil
}

func invalidAt(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(data)
}
