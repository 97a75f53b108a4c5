package harness_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/schema"
)

func TestMain(m *testing.M) { bustest.Main(m) }

// TestServers: each server that was killed comes back at its address with what it had stored, alone and among others.
func TestServers(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			servers := harness.StartServers(t, n)
			var b *bus.Bus
			bustest.Eventually(t, "the servers have found each other", func() (ok bool) {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				var err error
				b, err = bus.Connect(ctx, bus.Config{URL: servers.URL(), Replicas: n})
				return err == nil
			})
			t.Cleanup(b.Close)
			for i, p := range servers.Processes() {
				run := schema.NewID()
				bustest.Eventually(t, "a fact is written", func() bool {
					_, err := b.Append(t.Context(), run, schema.OpenKey(), &schema.Open{}, schema.Key{})
					return err == nil
				})
				servers.Restart(i)
				if p.Starts() != 2 {
					t.Errorf("server %d was started %d times: %s", i, p.Starts(), p.Log())
				}
				bustest.Eventually(t, "the fact is there", func() bool {
					facts, err := b.Facts(t.Context(), run, 0)
					return err == nil && len(facts) == 1
				})
			}
		})
	}
}

// TestKept: whoever ends is started again, and stays away for as long as it is told to; until it is stopped.
func TestKept(t *testing.T) {
	t.Parallel()
	p := harness.Keep(t, harness.Command{Program: "sh", Args: []string{"-c", "echo here; exec sleep 600"}})
	const away = 200 * time.Millisecond
	for n := 1; n <= 3; n++ {
		if p.Starts() != n {
			t.Errorf("started %d times, want %d", p.Starts(), n)
		}
		began := time.Now()
		p.Signal(os.Kill, away)
		bustest.Eventually(t, "it is started again", func() bool { return p.Starts() > n })
		if time.Since(began) < away {
			t.Errorf("it was away for %v", time.Since(began))
		}
	}
	p.Stop(os.Kill)
	if p.Starts() != 4 {
		t.Errorf("it was started %d times", p.Starts())
	}
}
