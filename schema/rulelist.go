package schema

import (
	"cmp"
	"slices"
	"strings"
)

// betweenRules stands between the rules of a Decision that several rules have taken.
const betweenRules = ", "

// Ends tells whether d is the last word about its call, so that no guard behind is asked. An unknown action is a denial.
func (d Decision) Ends() bool {
	switch d.Action {
	case "", ActionAllow, ActionAsk:
		return false
	}
	return true
}

// And returns what d and the decision of the next guard come to: what ends the asking wins, then what asks, where two
// questions become one. Allowing says nothing but by which rule.
func (d Decision) And(next Decision) Decision {
	switch {
	case d.Ends():
		return d
	case next.Ends():
		return next
	case d.Action == ActionAsk && next.Action == ActionAsk:
		return JoinAsks(d, next)
	case d.Action == ActionAsk:
		return d
	case next.Action == ActionAsk:
		return next
	}
	return Decision{Action: cmp.Or(d.Action, next.Action), Rule: cmp.Or(next.Rule, d.Rule)}
}

// GuardPanicked is what is made of a guard that panics: it may be the one that had to say no.
func GuardPanicked() Decision {
	return Decision{Action: ActionDeny, Rule: "guard_panic", Text: "a check of this call failed, so it did not run"}
}

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
