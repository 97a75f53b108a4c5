package worker

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

func TestWorkerEndsWhenItsSlotsAreLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		hang := executor.Tool{
			Tool: schema.Tool{Name: "hang", Description: "Ignores its context.", TimeoutMS: 1000},
			Run:  func(context.Context, *schema.Call) (string, error) { <-release; return "", nil },
		}
		set, err := executor.Config{Queue: "test", Logger: slog.New(slog.DiscardHandler)}.NewSet(hang)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- watchAbandoned(t.Context(), "test", set, 2) }()
		for range 2 {
			select {
			case err := <-ended:
				t.Fatalf("ended with a slot left: %v", err)
			default:
			}
			set.Execute(t.Context(), &schema.Call{Run: "r", Turn: 1, Tool: "hang", Args: "{}"})
			time.Sleep(2 * lookForAbandoned)
		}
		if err := <-ended; !errors.Is(err, errLostSlots) {
			t.Errorf("error %v, want %v", err, errLostSlots)
		}
		close(release)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := watchAbandoned(ctx, "test", set, 2); err != nil {
			t.Errorf("error %v after the end", err)
		}
	})
}
