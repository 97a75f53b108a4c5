package model

import (
	"cmp"
	"slices"

	"github.com/jetcrew/jetcrew/schema"
)

// Choose returns at most max of the tools in their order, and the rest; max 0 is no bound. Which they are depends on
// nothing but the tools: those of the program itself, which name no source, come before those of servers, and among
// equals the name decides.
func Choose(tools []schema.Tool, max int) (shown, rest []schema.Tool) {
	if max <= 0 || len(tools) <= max {
		return tools, nil
	}
	order := make([]int, len(tools))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &tools[i], &tools[j]
		return cmp.Or(foreign(a)-foreign(b), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Queue, b.Queue))
	})
	chosen := make([]bool, len(tools))
	for _, i := range order[:max] {
		chosen[i] = true
	}
	for i := range tools {
		if chosen[i] {
			shown = append(shown, tools[i])
		} else {
			rest = append(rest, tools[i])
		}
	}
	return shown, rest
}

func foreign(t *schema.Tool) int {
	if t.Source == "" || t.Source == schema.SourceSubagent {
		return 0
	}
	return 1
}
