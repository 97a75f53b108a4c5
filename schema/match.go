package schema

import "strings"

// MatchTool tells whether pattern names the tool that its queue knows as name. A pattern is a name or a glob over names,
// with a queue and '/' in front where it means that queue alone, or the one that the tool has of its own because its calls
// are limited. Only '*' and '?' are signs of a glob, since names may
// hold brackets; both also stand for a '/'. Agents are named only by patterns that begin with agents/: who means all
// tools does not mean other agents.
func MatchTool(pattern, queue, name string) bool {
	of, rest, ok := strings.Cut(pattern, "/")
	ok = ok && (of == queue || LimitedFrom(of, queue, name))
	if queue == QueueAgents && !ok {
		return false
	}
	if pattern == name { // a name may hold a slash of its own
		return true
	}
	if ok {
		pattern = rest
	}
	return glob(pattern, name)
}

// MatchesTool tells whether one of the patterns names the tool.
func MatchesTool(patterns []string, queue, name string) bool {
	for _, p := range patterns {
		if MatchTool(p, queue, name) {
			return true
		}
	}
	return false
}

// glob matches with '*' for any characters and '?' for one.
func glob(pattern, s string) bool {
	star, from := -1, 0 // the last '*', and what it covers so far
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && pattern[p] == '?':
			p++
			for i++; i < len(s) && s[i]&0xc0 == 0x80; i++ { // one character, not one byte
			}
		case p < len(pattern) && pattern[p] == s[i]:
			p++
			i++
		case star >= 0:
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
