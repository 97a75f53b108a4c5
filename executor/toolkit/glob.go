package toolkit

import (
	"fmt"
	"path"
	"strings"
)

// glob is a pattern over slash-separated paths: * ? [a-z] within one name, ** for any number of directories. A
// pattern without a slash is matched against the last name only.
type glob struct{ segments []string }

func parseGlob(pattern string) (*glob, error) {
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern
	}
	g := &glob{strings.Split(pattern, "/")}
	for _, s := range g.segments {
		if _, err := path.Match(s, ""); err != nil {
			return nil, fmt.Errorf("glob %q: %w", pattern, err)
		}
	}
	return g, nil
}

// match takes time proportional to the lengths of pattern and name, however many ** there are.
func (g *glob) match(name string) bool {
	names := strings.Split(name, "/")
	reach := make([]bool, len(names)+1) // reach[j]: the segments so far match names[:j]
	reach[0] = true
	for _, seg := range g.segments {
		reach = step(seg, names, reach)
	}
	return reach[len(names)]
}

func step(seg string, names []string, reach []bool) []bool {
	next := make([]bool, len(reach))
	for j := range reach {
		if seg == "**" {
			next[j] = reach[j] || j > 0 && next[j-1]
		} else if j > 0 && reach[j-1] {
			next[j], _ = path.Match(seg, names[j-1])
		}
	}
	return next
}
