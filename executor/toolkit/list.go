package toolkit

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jetcrew/jetcrew/executor"
)

const maxEntries = 1000 // names that list_files returns

type listArgs struct {
	Path string `json:"path,omitempty" jsonschema:"default=.,description=Directory below the working directory"`
	Glob string `json:"glob,omitempty" jsonschema:"description=Lists what matches at any depth below path instead of the directory itself: * and ? within a name and ** across directories; without a slash it is matched against the last name"`
}

func (f *files) listTool() executor.Tool {
	return executor.Func("list_files", "Lists a directory, one name a line; a directory ends with /, a symbolic link with @. With a glob, finds files at any depth (.git is left out).",
		f.list, reading()...)
}

func (f *files) list(ctx context.Context, in listArgs) (string, error) {
	if in.Glob != "" {
		return f.find(ctx, in)
	}
	name := f.name(in.Path)
	entries, err := fs.ReadDir(f.root.FS(), name)
	if err != nil {
		return "", fileError(name, err)
	}
	l := listing{limit: f.max}
	for _, e := range entries {
		if !l.add(e.Name() + mark(e)) {
			break
		}
	}
	return l.text("the directory is empty"), nil
}

func (f *files) find(ctx context.Context, in listArgs) (string, error) {
	g, err := parseGlob(in.Glob)
	if err != nil {
		return "", err
	}
	l := listing{limit: f.max}
	err = f.walk(ctx, f.name(in.Path), func(name, rel string, e fs.DirEntry) error {
		if g.match(rel) && !l.add(name+mark(e)) {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return l.text("no match"), nil
}

// walk calls visit for everything below dir, in lexical order, with its path below the root and below dir. It does
// not follow links, leaves out .git, and passes over directories that cannot be read.
func (f *files) walk(ctx context.Context, dir string, visit func(name, rel string, e fs.DirEntry) error) error {
	return fs.WalkDir(f.root.FS(), dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == dir:
			return fileError(name, err)
		case err != nil:
			return nil
		case e.IsDir() && e.Name() == ".git":
			return fs.SkipDir
		case name == dir && e.IsDir():
			return nil
		}
		return visit(name, below(dir, name), e)
	})
}

// below returns name relative to dir; of a file that was itself walked, its own name.
func below(dir, name string) string {
	switch {
	case dir == ".":
		return name
	case dir == name:
		return name[strings.LastIndexByte(name, '/')+1:]
	}
	return strings.TrimPrefix(name, dir+"/")
}

func mark(e fs.DirEntry) string {
	switch {
	case e.IsDir():
		return "/"
	case e.Type()&fs.ModeSymlink != 0:
		return "@"
	}
	return ""
}

// listing gathers lines up to a bound and says when there were more.
type listing struct {
	b     strings.Builder
	n     int
	limit int // bytes
	more  bool
}

func (l *listing) add(line string) bool {
	if l.n == maxEntries || l.b.Len()+len(line) >= l.limit {
		l.more = true
		return false
	}
	l.n++
	l.b.WriteString(line)
	l.b.WriteByte('\n')
	return true
}

func (l *listing) text(none string) string {
	if l.more {
		return fmt.Sprintf("%s[more than these %d are left out; ask for less]\n", l.b.String(), l.n)
	}
	if l.n == 0 {
		return none
	}
	return l.b.String()
}
