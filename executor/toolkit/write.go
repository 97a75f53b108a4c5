package toolkit

import (
	"context"
	"fmt"

	"github.com/jetcrew/jetcrew/executor"
)

type writeArgs struct {
	Path    string `json:"path" jsonschema:"pattern=\\S,description=Path of the file below the working directory; missing directories are made"`
	Content string `json:"content" jsonschema:"description=The whole new content"`
}

func (f *files) writeTool() executor.Tool {
	return executor.Func("write_file", "Creates a file, or replaces the whole content of one.", f.write, writing()...)
}

func (f *files) write(ctx context.Context, in writeArgs) (string, error) {
	p := plan{files: f}
	name := f.name(in.Path)
	c, err := p.change(name)
	if err != nil {
		return "", err
	}
	c.write([]byte(in.Content))
	if err := p.commit(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("wrote %d bytes to %s", len(in.Content), name), nil
}
