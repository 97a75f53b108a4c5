package agentfile

import (
	"slices"
	"strings"
	"unicode"
)

// shape says which fields a part of the file may have. The reader, the JSON Schema and the test of docs/agent-file.md
// all go by it.
type shape struct {
	name     string // in messages
	settings []setting
	open     bool     // further fields go on as they are
	actions  []string // of these fields at most one stands in the file
	need     []string // of these at least one
}

// setting is one field of a shape.
type setting struct {
	names    []string // its spellings; the first is the one that is shown
	form     form
	millis   form // of the names that end with Millis, where the others are durations
	required bool
	about    string
}

// spelled is a setting's name in camelCase with its snake_case spelling, and further names of the same setting.
func spelled(names ...string) []string {
	var all []string
	for _, name := range names {
		all = append(all, name)
		if s := snake(name); s != name {
			all = append(all, s)
		}
	}
	return all
}

func snake(name string) string {
	var b strings.Builder
	for _, c := range name {
		if unicode.IsUpper(c) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// names returns all names of all settings.
func (s *shape) names() []string {
	var all []string
	for _, set := range s.settings {
		all = append(all, set.names...)
	}
	return all
}

// sort puts fields under the first name of their setting, and returns those that are none.
func (s *shape) sort(r *reader, list []field) (known map[string]field, others []field) {
	byName := map[string]field{}
	names := s.names()
	for _, f := range list {
		if slices.Contains(names, f.name) {
			byName[f.name] = f
		} else {
			others = append(others, f)
		}
	}
	known = map[string]field{}
	for _, set := range s.settings {
		if f := r.pick(byName, set.names...); f.key != nil {
			known[set.names[0]] = f
		}
	}
	return known, others
}
