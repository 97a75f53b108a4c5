package toolkit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// plan is a set of changes to files that happens as a whole or not at all: first every new content is written beside
// its target, then the targets are replaced by renaming; if that fails half-way, what was done is undone. Another
// process may see some files changed and others not yet. Its methods are not for concurrent use.
type plan struct {
	files   *files
	changes []*change
	made    []string // directories, parents first
}

// change is what happens to one file.
type change struct {
	name string
	old  *content // nil: there is no such file
	new  *content // nil: the file is removed, or was never there
	temp string   // where the new content waits; empty: not staged, or in its place
	done bool
}

type content struct {
	data []byte
	mode fs.FileMode // permission bits; 0: what is usual for a new file
}

func (c *change) write(data []byte) {
	var mode fs.FileMode
	if c.old != nil {
		mode = c.old.mode
	}
	c.new = &content{data, mode}
}

// change returns the change of the file name, which starts as none. The target must be a regular file or absent:
// a link is never written through, nor replaced.
func (p *plan) change(name string) (*change, error) {
	for _, c := range p.changes {
		if c.name == name {
			return c, nil
		}
	}
	old, err := p.files.load(name)
	if err != nil {
		return nil, err
	}
	c := &change{name: name, old: old, new: old}
	p.changes = append(p.changes, c)
	return c, nil
}

// load reads a whole regular file; nil if there is none.
func (f *files) load(name string) (*content, error) {
	info, err := f.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fileError(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %s", name, kindOf(info.Mode()))
	}
	file, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, fileError(name, err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: has more than %d bytes", name, maxFile)
	}
	return &content{data, info.Mode().Perm()}, nil
}

// commit makes the changes. After an error, also that of an ended context, the tree is as it was.
func (p *plan) commit(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, p.undo())
		}
	}()
	for _, c := range p.changes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.stage(c); err != nil {
			return err
		}
	}
	for _, c := range p.changes {
		if err := p.apply(c); err != nil {
			return err
		}
	}
	return nil
}

func (c *change) needed() bool {
	switch {
	case c.old == nil || c.new == nil:
		return c.old != c.new
	}
	return c.old.mode != c.new.mode || !bytes.Equal(c.old.data, c.new.data)
}

func (p *plan) stage(c *change) (err error) {
	if !c.needed() || c.new == nil {
		return nil
	}
	if err := p.makeDirs(path.Dir(c.name)); err != nil {
		return err
	}
	c.temp, err = p.files.writeTemp(path.Dir(c.name), c.new)
	return err
}

func (p *plan) apply(c *change) (err error) {
	switch {
	case !c.needed():
		return nil
	case c.new == nil:
		err = p.files.root.Remove(c.name)
	default:
		err = p.files.root.Rename(c.temp, c.name)
	}
	if err != nil {
		return fileError(c.name, err)
	}
	c.temp, c.done = "", true
	return nil
}

// undo returns an error only for what it could not bring back.
func (p *plan) undo() error {
	var errs []error
	for _, c := range p.changes {
		if c.temp != "" {
			errs = append(errs, p.files.root.Remove(c.temp))
		}
		if c.done {
			errs = append(errs, p.files.restore(c))
		}
	}
	for i := len(p.made) - 1; i >= 0; i-- {
		_ = p.files.root.Remove(p.made[i]) // somebody may have put something in there meanwhile
	}
	return errors.Join(errs...)
}

func (f *files) restore(c *change) error {
	if c.old == nil {
		return f.root.Remove(c.name)
	}
	temp, err := f.writeTemp(path.Dir(c.name), c.old)
	if err != nil {
		return err
	}
	return f.root.Rename(temp, c.name)
}

// makeDirs makes dir and what is missing above it.
func (p *plan) makeDirs(dir string) error {
	if dir == "." || dir == "/" {
		return nil
	}
	if err := p.makeDirs(path.Dir(dir)); err != nil {
		return err
	}
	err := p.files.root.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fileError(dir, err)
	}
	p.made = append(p.made, dir)
	return nil
}

// writeTemp writes c to a new file in dir and returns its name. After an error there is no file.
func (f *files) writeTemp(dir string, c *content) (string, error) {
	name := path.Join(dir, ".jetcrew-"+rand.Text())
	file, err := f.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, cmp.Or(c.mode, 0o644))
	if err != nil {
		return "", fileError(dir, err)
	}
	_, err = file.Write(c.data)
	if err == nil && c.mode != 0 {
		err = file.Chmod(c.mode) // whatever the umask
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = f.root.Remove(name)
		return "", fileError(dir, err)
	}
	return name, nil
}
