package bus

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus/embedded"
)

// TestPublishThatIsGivenUp: a publish that fails while all open ones are given up, as when the connection has just come back
// or the bus is closed, is told of once, by its error or by its function.
func TestPublishThatIsGivenUp(t *testing.T) {
	t.Parallel()
	srv, err := embedded.Start(embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	b, err := Connect(t.Context(), Config{URL: srv.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	b.nc.Close()
	over := make(chan struct{})
	var giving sync.WaitGroup
	giving.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				b.giveUpAcks(time.Now())
			}
		}
	})
	for range 20_000 {
		var told atomic.Int64
		err := b.publishAsync(&nats.Msg{Subject: "jc.run.r.open"}, func(uint64, error) { told.Add(1) })
		if n := told.Load(); err != nil && n != 0 || err == nil && n > 1 {
			t.Fatalf("told %d times, and %v", n, err)
		}
	}
	close(over)
	giving.Wait()
}
