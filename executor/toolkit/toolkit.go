package toolkit

import (
	"fmt"

	"github.com/jetcrew/jetcrew/executor"
)

// Names of the toolkits, which are also the usual names of their queues.
const (
	FilesName = "files"
	ShellName = "shell"
)

// Names returns the names that Named takes.
func Names() []string { return []string{FilesName, ShellName} }

// Table returns the toolkits by name, with default settings, working on the directory root.
func Table(root string) executor.Toolkits {
	return executor.Toolkits{
		FilesName: func() ([]executor.Tool, error) { return Files(root, FilesConfig{}) },
		ShellName: func() ([]executor.Tool, error) { return Shell(root, ShellConfig{}) },
	}
}

// Named returns the tools of a toolkit by its name, with default settings, working on the directory root. An unknown
// name and a toolkit that cannot work here are errors that say which and why.
func Named(name, root string) ([]executor.Tool, error) {
	switch name {
	case FilesName:
		return Files(root, FilesConfig{})
	case ShellName:
		return Shell(root, ShellConfig{})
	}
	return nil, fmt.Errorf("toolkit %q: unknown, there are %q", name, Names())
}
