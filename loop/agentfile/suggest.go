package agentfile

import (
	"fmt"
	"slices"
	"strings"
)

func contains(list []string, s string) bool { return slices.Contains(list, s) }

// suggest returns a hint at the nearest of the known names, or all of them, in their first spelling, if none is near.
func suggest(name string, known []string) string {
	best, bestCost := "", 2
	if len(name) > 4 {
		bestCost = 3 // two letters that changed places cost 2
	}
	for _, k := range known {
		if cost := distance(strings.ToLower(short(name)), strings.ToLower(k)); cost < bestCost {
			best, bestCost = k, cost
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	shown := slices.DeleteFunc(slices.Clone(known), func(k string) bool { return strings.Contains(k, "_") })
	return "; known here: " + strings.Join(shown, ", ")
}

// suggestAll is suggest for names that may hold underscores.
func suggestAll(name string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	if hint := suggest(name, known); strings.HasPrefix(hint, "; did you mean") {
		return hint
	}
	return "; known here: " + strings.Join(known, ", ")
}

// distance counts the letters to insert, delete or change to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
