package bus_test

import (
	"testing"

	"github.com/jetcrew/jetcrew/schema"
)

// TestStopBelowGoesOn: a run below a stopped one that cannot be stopped does not keep the others from being stopped.
func TestStopBelowGoesOn(t *testing.T) {
	t.Parallel()
	b := connect(t, server(t))
	add := func(run string, key schema.Key, p schema.Encodable) {
		t.Helper()
		if _, err := b.Append(t.Context(), run, key, p, schema.Key{}); err != nil {
			t.Fatal(err)
		}
	}
	call := schema.TurnCall{Tool: "a", Queue: schema.QueueAgents, Args: "{}", Decision: schema.Decision{Action: schema.ActionAllow}}
	add("r", schema.OpenKey(), &schema.Open{Kind: schema.RunAgent})
	add("r", schema.TurnKey(1), &schema.Turn{N: 1, Calls: []schema.TurnCall{call, call}})
	add(schema.ChildRun("r", 1, 0, 1), schema.OpenKey(), &schema.Call{Agent: "this is no open"})
	add(schema.ChildRun("r", 1, 1, 1), schema.OpenKey(), &schema.Open{Kind: schema.RunAgent})
	if _, err := b.StopRun(t.Context(), "r", "enough"); err != nil {
		t.Fatal(err)
	}
	if slot, err := b.Look(t.Context(), schema.ChildRun("r", 1, 1, 1), schema.CtlKey(1)); err != nil || slot == nil {
		t.Errorf("not stopped: %v", err)
	}
}
