package agentfile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"syscall"
	"unicode/utf8"

	"github.com/jetcrew/jetcrew/schema"
)

// Version is what the field version of an agent file says.
const Version = "jetcrew/v1"

// MaxSize bounds an agent file, in bytes.
const MaxSize = 128 << 10

// File is an agent file that was read.
type File struct {
	Agent    schema.AgentSpec
	Warnings []Problem // in the order of their places

	reader *reader
}

// Problem returns a problem that somebody else found with the value at path, placed in the file. A path begins with $,
// as in Problem.Path, or it is one below schema.Governance, such as filters[0].when. Where the file has no such value
// the nearest one around it is shown.
func (f *File) Problem(path string, code Code, message string) Problem {
	return f.reader.atPath(path, code, "%s", message)
}

// ProblemIn is Problem with a place within the text at path: a line and a column of it, from 1.
func (f *File) ProblemIn(path string, code Code, message string, line, column int) Problem {
	tok, _ := f.reader.find(path)
	return f.reader.into(f.Problem(path, code, message), tok, line, column)
}

// Fail returns the *Error that holds problems of the file, in the order of their places, and its warnings.
func (f *File) Fail(problems ...Problem) error {
	return &Error{File: f.reader.file, Problems: inOrder(problems), Warnings: f.Warnings, Read: f}
}

// Load reads the agent file at path. Problems of its content are an *Error; others come from the file system.
func Load(path string) (schema.AgentSpec, error) {
	f, err := Open(path)
	if err != nil {
		return schema.AgentSpec{}, err
	}
	return f.Agent, nil
}

// Parse reads an agent file from data; name stands for the file in errors. What the file leaves out has its default:
// 20 steps, 5 minutes, any number of tokens, calls one after another. All problems that were found are in the *Error it
// returns. It never panics, whatever data holds.
func Parse(name string, data []byte) (schema.AgentSpec, error) {
	f, err := Read(name, data)
	if err != nil {
		return schema.AgentSpec{}, err
	}
	return f.Agent, nil
}

// Open is Load for who wants more of the file than its agent.
func Open(path string) (*File, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, fmt.Errorf("agent file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("agent file: %w", err)
	}
	return Read(path, data)
}

// openFile opens a file to read. Of a named pipe nobody writes to it reads nothing, where os.Open would wait for ever.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Read is Parse for who wants more of the file than its agent.
func Read(name string, data []byte) (*File, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	src := newSource(name, data[:min(len(data), MaxSize)])
	switch {
	case len(data) > MaxSize:
		return nil, src.fail(src.problem(1, 1, CodeFileSize, "the file is larger than %d KiB", MaxSize>>10))
	case !utf8.Valid(data):
		line := 1 + bytes.Count(data[:invalidAt(data)], []byte("\n"))
		return nil, src.fail(src.problem(line, 1, CodeFileEncoding, "the text is not valid UTF-8"))
	}
	root, problem := parse(src, data)
	if problem != nil {
		return nil, src.fail(*problem)
	}
	f := &File{reader: newReader(src, root)}
	if f.reader.anchors(root) {
		f.Agent = f.reader.agent(root)
	}
	f.Warnings = inOrder(f.reader.warnings)
	if len(f.reader.problems) > 0 {
		return nil, f.Fail(f.reader.problems...)
	}
	return f, nil
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
