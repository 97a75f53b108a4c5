package toolkit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

// FilesConfig sets up the file tools.
type FilesConfig struct {
	MaxOutput int // bytes of output of one call, head and tail; default 64 KiB, at most 192 KiB
}

const (
	defaultOutput = 64 << 10
	maxOutput     = 192 << 10 // leaves room below executor.MaxOutput for repaired characters and the marker
	maxFile       = 16 << 20  // bytes of a file that apply_patch takes
	fileTimeout   = 60 * time.Second
)

// outputLimit returns the default for 0 and keeps the rest in bounds.
func outputLimit(n int) int {
	if n <= 0 {
		return defaultOutput
	}
	return min(max(n, 1<<10), maxOutput)
}

// files are the file tools of one root. The root is opened once: what the name means later does not matter.
type files struct {
	root *os.Root
	dir  string // absolute, for paths that a model gives in full
	max  int
}

// Files returns read_file, list_files, search_files, write_file, apply_patch and watch_files on the directory root.
// No path leaves it, neither by "..", nor by an absolute path, nor through a link.
func Files(root string, cfg FilesConfig) ([]executor.Tool, error) {
	dir, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("toolkit %q: %w", FilesName, err)
	}
	r, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("toolkit %q: %w", FilesName, err)
	}
	f := &files{root: r, dir: dir, max: outputLimit(cfg.MaxOutput)}
	return []executor.Tool{f.readTool(), f.listTool(), f.searchTool(), f.writeTool(), f.patchTool(), f.watchTool()}, nil
}

// reading are the options of a tool that changes nothing.
func reading() []executor.Option {
	return []executor.Option{executor.Idempotent(), executor.Effect(schema.EffectRead), executor.Timeout(fileTimeout)}
}

// writing are the options of a tool that changes files.
func writing() []executor.Option {
	return []executor.Option{executor.Effect(schema.EffectWrite), executor.Timeout(fileTimeout)}
}

// name returns a model's path in the form that the root takes: slashes, no "./", and relative if it was the full
// path of something below the root. Whether it stays inside is the root's decision.
func (f *files) name(p string) string {
	if p == "" {
		return "."
	}
	if filepath.IsAbs(p) {
		if rel, err := filepath.Rel(f.dir, p); err == nil {
			p = rel
		}
	}
	return path.Clean(filepath.ToSlash(p))
}

// open opens a regular file for reading. A pipe would block for ever, hence the flag.
func (f *files) open(name string) (*os.File, error) {
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fileError(name, err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New(kindOf(info.Mode()))
	}
	if err != nil {
		_ = file.Close() // nothing was written
		return nil, fileError(name, err)
	}
	return file, nil
}

// fileError says what is wrong with a path without the name of the system call.
func fileError(name string, err error) error {
	var pathErr *fs.PathError
	var linkErr *os.LinkError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fs.ErrNotExist
	case errors.As(err, &pathErr):
		err = pathErr.Err
	case errors.As(err, &linkErr):
		err = linkErr.Err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// kindOf says what a mode is that is not a regular file's.
func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "is a directory"
	case m&fs.ModeSymlink != 0:
		return "is a symbolic link"
	}
	return "is not a regular file"
}

// isBinary tells whether the beginning of a file is not text.
func isBinary(beginning []byte) bool { return strings.IndexByte(string(beginning), 0) >= 0 }
