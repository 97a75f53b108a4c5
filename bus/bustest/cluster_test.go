package bustest_test

import (
	"testing"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// TestCluster: a stream on three nodes takes facts whatever is done to the node that leads it.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := bustest.StartCluster(t, 3)
	var members []*bus.Bus
	for i := range 3 {
		b, err := bus.Connect(t.Context(), bus.Config{URL: c.URL(i), Replicas: 3})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		members = append(members, b)
	}
	leads := func() int {
		bustest.Eventually(t, "a node leads", func() bool { return c.Leader("JC_RUNS", "") >= 0 })
		return c.Leader("JC_RUNS", "")
	}
	for _, tt := range []struct {
		name     string
		do, undo func(leader int)
		moves    bool // another node leads then
	}{
		{"isolate a follower", func(leader int) { c.Isolate((leader + 1) % 3) }, func(leader int) { c.Rejoin((leader + 1) % 3) }, false},
		{"lame duck", c.LameDuck, c.Start, true},
		{"step down", func(int) { c.StepDown("JC_RUNS", "") }, func(int) {}, true},
	} {
		leader := leads()
		tt.do(leader)
		if tt.moves {
			bustest.Eventually(t, tt.name+": another node leads", func() bool { return c.Leader("JC_RUNS", "") != leader })
		}
		if _, err := members[(leader+2)%3].Append(t.Context(), schema.NewID(), schema.OpenKey(), &schema.Open{}, schema.Key{}); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		tt.undo(leader)
	}
}
