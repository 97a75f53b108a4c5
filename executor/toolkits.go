package executor

import (
	"fmt"
	"maps"
	"slices"

	"github.com/jetcrew/jetcrew/schema"
)

// Toolkits is a table of toolkits by name. A constructor makes the toolkit's tools, or says why it cannot be had here.
type Toolkits map[string]func() ([]Tool, error)

// Names returns the names of the toolkits, sorted.
func (t Toolkits) Names() []string { return slices.Sorted(maps.Keys(t)) }

// Open returns the tools of a toolkit. An unknown name and a toolkit that is not available are errors with name and
// cause.
func (t Toolkits) Open(name string) ([]Tool, error) {
	construct := t[name]
	if construct == nil {
		return nil, fmt.Errorf("toolkit %q is unknown, there are %q", schema.Cut(name, 80), t.Names())
	}
	tools, err := construct()
	if err != nil {
		return nil, fmt.Errorf("toolkit %q is not available: %w", name, err)
	}
	for i := range tools {
		tools[i].origin = fmt.Sprintf("toolkit %q", name)
	}
	return tools, nil
}
