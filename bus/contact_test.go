package bus_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// TestB12ClientOfAnIsolatedNode: who is connected to a node that has lost sight of the others goes to another one, if it
// knows one, whether the node led the streams or followed.
func TestB12ClientOfAnIsolatedNode(t *testing.T) {
	t.Parallel()
	for name, node := range map[string]func(leader int) int{
		"leader":   func(leader int) int { return leader },
		"follower": func(leader int) int { return (leader + 1) % 3 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := bustest.StartCluster(t, 3)
			member(t, c) // makes the streams
			bustest.Eventually(t, "the calls have a leader", func() bool { return c.Leader("JC_WORK", "") >= 0 })
			lost := node(c.Leader("JC_WORK", ""))
			serve(t, member(t, c, (lost+1)%3), bus.Worker{Queue: "test", Slots: 4, Tools: toolbox{"echo": echo}})
			b, err := bus.Connect(t.Context(), bus.Config{
				URL: strings.Join([]string{c.URL(lost), c.URL((lost + 2) % 3)}, ","), Replicas: 3, Options: []nats.Option{nats.DontRandomize()},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(b.Close)
			c.Isolate(lost)
			began := time.Now()
			if r, err := b.Dispatch(t.Context(), call(schema.NewID(), "echo", 0), "test", 30*time.Second); err != nil || !r.OK {
				t.Errorf("%+v, %v", r, err)
			}
			t.Logf("it took %v", time.Since(began))
		})
	}
}
