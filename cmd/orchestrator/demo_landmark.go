package main

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jetcrew/jetcrew/cmd/internal/view"
)

// landmark returns the name of a file in dir that the demo can read and watch in peace: the text file that was changed
// longest ago. Where there is none it is ".", the directory itself.
func landmark(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "." // the tools will say what is wrong
	}
	name, oldest := ".", time.Now()
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.ModTime().Before(oldest) && isPlain(e.Name()) && isText(filepath.Join(dir, e.Name()), info) {
			name, oldest = e.Name(), info.ModTime()
		}
	}
	return name
}

// isPlain tells whether a name can stand in a recording as it is. Hidden files are left alone: what is in .env is not
// to be shown.
func isPlain(name string) bool {
	return !strings.HasPrefix(name, ".") && utf8.ValidString(name) && view.Clean(name) == name
}

// isText tells whether a file can be read and is a text of moderate size.
func isText(path string, info fs.FileInfo) bool {
	if !info.Mode().IsRegular() || info.Size() == 0 || info.Size() > 1<<20 {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 8000))
	return err == nil && bytes.IndexByte(head, 0) < 0
}
