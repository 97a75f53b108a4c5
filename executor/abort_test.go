package executor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

func TestAbort(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	typed := &schema.Error{Type: schema.RateLimited, Message: "slow down"}
	tests := []struct {
		name   string
		err    error
		want   outcome
		aborts bool
	}{
		{"plain", boom, outcome{Type: schema.ToolFailed, Output: "boom"}, false},
		{"abort", executor.Abort(boom), outcome{Type: schema.ToolFailed, Output: "boom"}, true},
		{"twice", executor.Abort(executor.Abort(boom)), outcome{Type: schema.ToolFailed, Output: "boom"}, true},
		{"wrapped", wrapped{executor.Abort(boom)}, outcome{Type: schema.ToolFailed, Output: "shop: boom"}, true},
		{"typed", executor.Abort(typed), outcome{Type: schema.RateLimited, Output: "slow down"}, true},
		{"transient", executor.Abort(executor.Transient(boom, 0)), outcome{Type: schema.ToolFailed, Output: "boom"}, true},
	}
	for _, tt := range tests {
		set := quiet(t, fails("t", tt.err, executor.Idempotent()))
		c := call("t", "")
		c.Idempotent = true
		r, pending := set.Execute(t.Context(), c)
		if pending != nil || outcomeOf(r) != tt.want || r.Aborts != tt.aborts {
			t.Errorf("%s: got %+v, aborts %v, pending %v; want %+v, %v", tt.name, outcomeOf(r), r.Aborts, pending, tt.want, tt.aborts)
		}
		_, err := set.Call(t.Context(), "t", "")
		if !errors.Is(err, boom) && !errors.Is(err, typed) {
			t.Errorf("%s: from code: %v", tt.name, err)
		}
	}
	if executor.Abort(nil) != nil {
		t.Error("Abort(nil) is an error")
	}
}

// A tool that was cut off may still say that the run shall end.
func TestAbortAtTheTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := quiet(t, text("t", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", executor.Abort(ctx.Err()) }, executor.Timeout(time.Second)))
		r, _ := set.Execute(t.Context(), call("t", ""))
		if r.Error.Type != schema.Timeout || !r.Aborts {
			t.Errorf("got %+v", r)
		}
	})
}

type wrapped struct{ error }

func (w wrapped) Error() string { return "shop: " + w.error.Error() }
func (w wrapped) Unwrap() error { return w.error }
