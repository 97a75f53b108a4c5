package toolkit

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/schema"
)

func TestOutputProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var seen []string
		ctx := schema.WithProgress(t.Context(), func(s string) { seen = append(seen, time.Since(start).String()+" "+s) })
		o := newOutput(ctx, 1<<10)
		for _, step := range []struct {
			text  string
			pause time.Duration
		}{
			{"one ", 50 * time.Millisecond},
			{"two \xf0\x9f", 250 * time.Millisecond}, // reported at 200 ms, without the half character
			{"\x99\x82", 500 * time.Millisecond},     // whole at 300 ms, reported at 400 ms
			{"three ", 0},                            // at once
			{strings.Repeat("x", 2*progressBytes), 300 * time.Millisecond},
			{"never", 0},
		} {
			_, _ = o.Write([]byte(step.text))
			time.Sleep(step.pause)
		}
		o.close()
		time.Sleep(time.Second)
		want := []string{"0s one ", "200ms two ", "400ms 🙂", "800ms three ", "1s " + strings.Repeat("x", progressBytes)}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Error(diff)
		}
		if got, _ := o.end(); !strings.HasPrefix(got, "one two 🙂three x") || !strings.HasSuffix(got, "xnever") {
			t.Errorf("got %q", got)
		}
	})
}
