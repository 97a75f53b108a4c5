package agentfile

import (
	"slices"
	"strings"

	"github.com/jetcrew/jetcrew/schema"
)

// covers tells whether pattern names whatever narrower names, as far as that can be told from the two alone.
func covers(pattern, narrower string) bool {
	if pattern == narrower {
		return true
	}
	if strings.Contains(pattern, "?") && isGlob(narrower) {
		return false // a ? would match the sign *, and not what it stands for
	}
	queue, name, ok := strings.Cut(narrower, "/")
	if !ok {
		queue, name = "", narrower
	}
	return schema.MatchTool(pattern, queue, name)
}

// coversAll tells whether one of the patterns covers each of narrower. No patterns at all mean every tool.
func coversAll(patterns, narrower []string) bool {
	if len(patterns) == 0 {
		return true
	}
	return len(narrower) > 0 && !slices.ContainsFunc(narrower, func(n string) bool {
		return !slices.ContainsFunc(patterns, func(p string) bool { return covers(p, n) })
	})
}

// namesAny tells whether a pattern may name a tool that one of the known patterns names. Agents are named only by
// patterns that begin with their queue.
func namesAny(pattern string, known []string) bool {
	return slices.ContainsFunc(known, func(k string) bool {
		const agents = schema.QueueAgents + "/"
		_, kName, ok := strings.Cut(k, "/")
		switch {
		case strings.HasPrefix(k, agents) || strings.HasPrefix(pattern, agents):
			return strings.HasPrefix(k, agents) && strings.HasPrefix(pattern, agents) && meet(pattern, k)
		case queueGlob(pattern): // of names that hold a slash
			return meet(pattern, k) && !ok || meet(pattern, kName) && ok || pattern == k
		case meet(pattern, k):
			return true
		case strings.Contains(pattern, "/"):
			return ok && meet(pattern, kName) || !ok && meet(toolOf(pattern), k)
		}
		return ok && meet(pattern, kName)
	})
}

// queueGlob tells whether a pattern has a glob where it might mean a queue, which is always named as it is.
func queueGlob(pattern string) bool {
	queue, _, ok := strings.Cut(pattern, "/")
	return ok && isGlob(queue)
}

// maxPattern bounds what is compared, in bytes; a longer pattern is taken to meet everything.
const maxPattern = 256

// meet tells whether there is a text that both globs match.
func meet(a, b string) bool {
	if len(a) > maxPattern || len(b) > maxPattern {
		return true
	}
	// row[j] tells whether what is left of a from some sign on meets what is left of b from j on.
	row := make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		diagonal := false // row[j+1] of the sign of a behind this one
		for j := len(b); j >= 0; j-- {
			under := row[j] // of the sign of a behind this one
			right := j < len(b) && row[j+1]
			switch {
			case i == len(a) && j == len(b):
				row[j] = true
			case i < len(a) && a[i] == '*' || j < len(b) && b[j] == '*':
				row[j] = under || right // the star takes the other sign, or nothing
			case i == len(a) || j == len(b):
				row[j] = false
			default:
				row[j] = diagonal && (a[i] == b[j] || a[i] == '?' || b[j] == '?')
			}
			diagonal = under
		}
	}
	return row[0]
}
