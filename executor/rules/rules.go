package rules

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"github.com/jetcrew/jetcrew/schema"
)

// Rules is a compiled governance. It never changes and is safe for concurrent use.
type Rules struct {
	environment string
	filters     []filter
	standing
	above []above
}

// standing is what one agent says about permission.
type standing struct {
	settings []setting
	policy   policy
}

// Compile compiles the tools, filters, policy and environment of a governance, and the policies of the agents above it; nil
// lets every call go on. The error is Problems, and lists every one. What else a governance holds (authority, abort_on,
// sub-agents) is not looked at.
func Compile(g *schema.Governance) (*Rules, error) {
	if g == nil {
		g = &schema.Governance{}
	}
	c := compiler{taken: map[string]string{}}
	r := &Rules{environment: g.Environment}
	r.settings, r.filters, r.policy = c.settings(g.Tools), c.filters(g.Filters), c.policy(g.Policy)
	r.above = c.above(g.Above)
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return r, nil
}

// setting returns the first setting that names the tool, nil when there is none.
func (st *standing) setting(s *subject) *setting {
	for i := range st.settings {
		if schema.MatchTool(st.settings[i].ref, s.queue, s.tool) {
			return &st.settings[i]
		}
	}
	return nil
}

// compiler collects what is wrong while it compiles.
type compiler struct {
	problems Problems
	taken    map[string]string // by the names of rules: the places that have them
	cel      celEnv
}

// name returns what decisions call a rule. An approval counts for the rule that asked, so no two may be called alike.
func (c *compiler) name(name, place string) string {
	called := cmp.Or(name, place)
	if strings.ContainsFunc(name, func(r rune) bool { return r == ',' || unicode.IsControl(r) }) {
		c.problems.add(place+".name", CodeName, "%.80q: a name has no commas, which stand between the names of several rules, and no control characters", name)
	}
	if first, ok := c.taken[called]; ok {
		c.problems.add(place+".name", CodeDuplicate, "%s is called %.80q too; give each rule a name of its own, or none", first, called)
		return called
	}
	c.taken[called] = place
	return called
}

// oneOf checks a value against those that there are; "" passes.
func (c *compiler) oneOf(path, what, value string, known ...string) {
	for _, k := range known {
		if value == "" || value == k {
			return
		}
	}
	c.problems.add(path, CodeUnknown, "%.80q is no %s; there are %s", value, what, list(known))
}

func list(words []string) string {
	text := ""
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			text += " and "
		default:
			text += ", "
		}
		text += w
	}
	return text
}

func place(of string, i int) string { return fmt.Sprintf("%s[%d]", of, i) }
