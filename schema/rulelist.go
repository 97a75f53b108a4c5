package schema

import (
	"cmp"
	"slices"
	"strings"
)

// betweenRules stands between the rules of a Decision that several rules have taken.
const betweenRules = ", "

// JoinAsks makes one question of two: a person answers for all rules that ask.
func JoinAsks(a, b Decision) Decision {
	if !RulesCovered(b.Rule, a.Rule) {
		a.Rule = joined(a.Rule, betweenRules, b.Rule)
	}
	if !strings.Contains(a.Text, b.Text) {
		a.Text = joined(a.Text, "; ", b.Text)
	}
	return a
}

// RulesCovered tells whether each of the rules that ask now is one of those that asked before.
func RulesCovered(now, before string) bool {
	known := strings.Split(before, betweenRules)
	for rule := range strings.SplitSeq(now, betweenRules) {
		if !slices.Contains(known, rule) {
			return false
		}
	}
	return true
}

func joined(a, between, b string) string {
	if a == "" || b == "" {
		return cmp.Or(a, b)
	}
	return a + between + b
}
