package toolkit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

const maxMatchText = 300 // bytes of a matching line that search_files returns

type searchArgs struct {
	Pattern string `json:"pattern" jsonschema:"minLength=1,description=Regular expression in RE2 syntax; (?i) at its beginning ignores case"`
	Path    string `json:"path,omitempty" jsonschema:"default=.,description=Directory or file below the working directory"`
	Glob    string `json:"glob,omitempty" jsonschema:"description=Searches only files that match; same form as in list_files"`
}

func (f *files) searchTool() executor.Tool {
	return executor.Func("search_files", "Finds lines of text files that match a regular expression, as path:line: text. Binary files and .git are left out.",
		f.search, reading()...)
}

func (f *files) search(ctx context.Context, in searchArgs) (string, error) {
	re, err := regexp.Compile(in.Pattern)
	if err != nil {
		return "", fmt.Errorf("pattern: %w", err)
	}
	g := &glob{[]string{"**"}}
	if in.Glob != "" {
		if g, err = parseGlob(in.Glob); err != nil {
			return "", err
		}
	}
	l := listing{limit: f.max}
	err = f.walk(ctx, f.name(in.Path), func(name, rel string, e fs.DirEntry) error {
		if !e.Type().IsRegular() || !g.match(rel) {
			return nil
		}
		return f.grep(ctx, re, name, &l)
	})
	if err != nil {
		return "", err
	}
	return l.text("no match"), nil
}

// grep adds the matching lines of one file. A file that cannot be read has none.
func (f *files) grep(ctx context.Context, re *regexp.Regexp, name string, l *listing) error {
	file, err := f.open(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	r := bufio.NewReaderSize(ctxReader{ctx, file}, 64<<10)
	if start, _ := r.Peek(8000); isBinary(start) {
		return ctx.Err()
	}
	for n := 1; ; n++ {
		line, err := readLine(r)
		if len(line) == 0 && err != nil {
			return ctx.Err()
		}
		line = bytes.TrimRight(line, "\r\n")
		if re.Match(line) && !l.add(fmt.Sprintf("%s:%d: %s", name, n, schema.Cut(schema.CleanText(string(line)), maxMatchText))) {
			return fs.SkipAll
		}
		if err != nil {
			return ctx.Err()
		}
	}
}

// readLine returns the next line, of a very long one the first 64 KiB. With an error it is the last one.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	line = bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	return line, err
}
