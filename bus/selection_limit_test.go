package bus

import (
	"slices"
	"testing"

	"github.com/jetcrew/jetcrew/schema"
)

// TestChooseLimited: while some workers limit a tool and others do not, the limited one is taken, however it is named.
func TestChooseLimited(t *testing.T) {
	t.Parallel()
	offered := []schema.Tool{{Name: "bash", Queue: "shell"}, {Name: "bash", Queue: schema.LimitedQueue("shell", "bash")}}
	for range 2 {
		for _, p := range []string{"bash", "shell/bash", "shell/*", "*"} {
			if got, err := choose(offered, []string{p}); err != nil || len(got) != 1 || got[0].Queue != "shell-bash" {
				t.Errorf("%s: %+v, %v", p, got, err)
			}
		}
		slices.Reverse(offered)
	}
	if got, err := choose([]schema.Tool{{Name: "bash", Queue: "shell"}, {Name: "bash", Queue: "other"}}, []string{"bash"}); err == nil {
		t.Errorf("of two queues that have nothing to do with each other: %+v", got)
	}
}
