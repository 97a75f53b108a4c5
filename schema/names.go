package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

const (
	maxNearest  = 5  // names that an UnknownTool error lists
	maxCompared = 64 // characters of a name that distances look at
)

// Resolve returns the one of the known names that a model's name means: that name itself, or, if exactly one known
// name fits, the one that it equals but for case, white space around it and namespaces before it, such as
// functions.bash, default_api:read_file and mcp__server__bash. Known are the names this agent may call. Two known names
// that fit are no answer: guessing between tools is worse than asking the model again.
func Resolve(name string, known []string) (string, bool) {
	if slices.Contains(known, name) {
		return name, true
	}
	name = strings.TrimSpace(name)
	if name == "" || len(name) > maxName {
		return "", false
	}
	if slices.Contains(known, name) {
		return name, true
	}
	found, n := "", 0
	for _, k := range known {
		if fits(name, k) {
			found, n = k, n+1
		}
	}
	return found, n == 1
}

// fits tells whether name is known but for its case and the namespaces before it.
func fits(name, known string) bool {
	if strings.EqualFold(name, known) {
		return true
	}
	at := len(name) - len(known)
	if known == "" || at < 2 || !strings.EqualFold(name[at:], known) {
		return false
	}
	space := name[:at]
	return strings.ContainsRune(".:/", rune(space[at-1])) || len(space) > 2 && strings.HasSuffix(space, "__")
}

// Unknown returns the UnknownTool error for a name that is none of known: it names the nearest of those, at most five.
// Name may be anything that a model wrote.
func Unknown(name string, known []string) *Error {
	text := "there is no tool " + quoted(strings.TrimSpace(name))
	if strings.TrimSpace(name) == "" {
		text = "a tool name is required"
	}
	near := nearest(name, known, maxNearest, false)
	for i := range near {
		near[i] = quoted(near[i])
	}
	switch {
	case len(known) == 0:
		text += "; no tools are available"
	case len(near) == len(known):
		text += "; available: " + strings.Join(near, ", ")
	default:
		text += fmt.Sprintf("; the nearest of %d tools: %s", len(known), strings.Join(near, ", "))
	}
	return &Error{Type: UnknownTool, Message: text}
}

// nearest returns at most n of known, the ones most like name first; with only, just those that may be the same
// word: one contains the other, or few characters differ.
func nearest(name string, known []string, n int, only bool) []string {
	type scored struct {
		name string
		cost int
	}
	plain := plainName(name)
	var all []scored
	for _, k := range known {
		cost, like := likeness(plain, plainName(k))
		if like || !only {
			all = append(all, scored{k, cost})
		}
	}
	slices.SortFunc(all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.name, b.name))
	})
	names := make([]string, 0, n)
	for _, s := range all[:min(len(all), n)] {
		names = append(names, s.name)
	}
	return names
}

// plainName is a name without what people spell differently: case and separators.
func plainName(name string) []rune {
	plain := make([]rune, 0, maxCompared)
	for _, r := range name {
		if len(plain) == maxCompared {
			break
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			plain = append(plain, unicode.ToLower(r))
		}
	}
	return plain
}

// likeness returns how far apart two names are, and whether they may be the same word.
func likeness(a, b []rune) (cost int, like bool) {
	cost = distance(a, b)
	short, long := string(a), string(b)
	if len(a) > len(b) {
		short, long = long, short
	}
	if min(len(a), len(b)) >= 3 && strings.Contains(long, short) {
		return min(cost, 2), true
	}
	n := min(len(a), len(b))
	return cost, cost < n && cost <= max(1, n/3)
}

// distance is the number of characters to insert, delete or replace on the way from a to b (Levenshtein).
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, ra := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, rb := range b {
			cost := diagonal
			if ra != rb {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
