package toolkit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jetcrew/jetcrew/executor"
)

type readArgs struct {
	Path   string `json:"path" jsonschema:"pattern=\\S,description=Path of the file below the working directory"`
	Offset int    `json:"offset,omitempty" jsonschema:"minimum=1,description=First line to read; the first line is 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"minimum=1,description=How many lines to read; all if absent"`
}

func (f *files) readTool() executor.Tool {
	return executor.Func("read_file", "Reads a text file, or some lines of it. Of a long text the middle is left out; ask for it with offset and limit.",
		f.read, reading()...)
}

func (f *files) read(ctx context.Context, in readArgs) (string, error) {
	name := f.name(in.Path)
	file, err := f.open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	r := bufio.NewReaderSize(ctxReader{ctx, file}, 32<<10)
	if start, _ := r.Peek(8000); isBinary(start) {
		return "", fmt.Errorf("%s: is not a text file", name)
	}
	out := newClip(f.max)
	if in.Offset == 0 && in.Limit == 0 {
		_, err = r.WriteTo(out)
	} else {
		err = copyLines(out, r, max(in.Offset, 1), in.Limit)
	}
	if err != nil {
		return "", fileError(name, err)
	}
	return out.String(), nil
}

// copyLines copies limit lines (0: all) beginning with line first. A first line beyond the end is an error.
func copyLines(w io.Writer, r *bufio.Reader, first, limit int) error {
	for line := 1; limit == 0 || line < first+limit; {
		part, err := r.ReadSlice('\n')
		if line >= first {
			_, _ = w.Write(part) // a clip never fails
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull): // the line goes on
			continue
		case errors.Is(err, io.EOF):
			if len(part) == 0 {
				line--
			}
			if line < first {
				return fmt.Errorf("offset %d is beyond the end, the file has %d lines", first, line)
			}
			return nil
		case err != nil:
			return err
		}
		line++
	}
	return nil
}

// ctxReader ends reading when its context ends. It lives for one call.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r ctxReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
