package rules

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jetcrew/jetcrew/schema"
)

// matcher is which calls a rule is about. A dimension that is empty is about all.
type matcher struct {
	tools, effects, environments []string
	stops                        bool // the rule stops calls or asks about them: the name that the model sees counts too
	when                         condition
}

// match tells whether the rule is about the call. An error says that the condition could not be evaluated for a call
// that is otherwise one of them; whoever asks takes it for the worse.
//
// What frees a call goes by its identity alone: a tool that is shown under another one's name must not get its
// permissions.
func (m *matcher) match(s *subject) (bool, error) {
	if len(m.tools) > 0 && !schema.MatchesTool(m.tools, s.queue, s.tool) &&
		(!m.stops || s.exposed == "" || !schema.MatchesTool(m.tools, s.queue, s.exposed)) {
		return false, nil
	}
	if len(m.effects) > 0 && !slices.Contains(m.effects, s.effect) || len(m.environments) > 0 && !slices.Contains(m.environments, s.environment) {
		return false, nil
	}
	return m.when.holds(s)
}

// patterns checks patterns of tools.
func (c *compiler) patterns(path string, patterns []string) []string {
	for i, p := range patterns {
		c.pattern(place(path, i), p)
	}
	return slices.Clone(patterns)
}

const maxPattern = 64 + 1 + 256 // bytes of a pattern: a queue, '/' and the name of a tool

func (c *compiler) pattern(path, p string) {
	switch {
	case p == "":
		c.problems.add(path, CodePattern, "the pattern is empty; want a tool's name, a glob such as read_*, or queue/name")
	case len(p) > maxPattern:
		c.problems.add(path, CodePattern, "the pattern has more than %d bytes, and no tool has such a name", maxPattern)
	case strings.TrimSpace(p) != p || !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsControl):
		c.problems.add(path, CodePattern, "%.80q: no tool's name has white space around it, control characters or invalid UTF-8", p)
	case strings.HasSuffix(p, "/") && schema.CheckQueue(p[:len(p)-1]) == nil:
		c.problems.add(path, CodePattern, "%.80q names a queue and no tool; want %.80s* for all of it", p, p)
	}
}
