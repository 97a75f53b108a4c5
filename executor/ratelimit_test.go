package executor_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

func TestRateLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit, err := executor.RateLimit("web_*", 2, 3)
		if err != nil {
			t.Fatal(err)
		}
		set := quiet(t, says("web_get", "ok"), says("web_put", "ok"), says("other", "ok")).With(limit)
		for i, tool := range []string{"web_get", "web_put", "web_get"} { // the burst
			if got := execute(t, set, call(tool, "")); !got.OK {
				t.Errorf("call %d: %+v", i, got)
			}
		}
		want := outcome{Type: schema.RateLimited, Output: "too many calls of web_put; try again in 500ms"}
		if got := execute(t, set, call("web_put", "")); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if got := execute(t, set, call("other", "")); !got.OK {
			t.Errorf("another tool: %+v", got)
		}
		time.Sleep(495 * time.Millisecond)
		if got := execute(t, set, call("web_get", "")); got.Output != "too many calls of web_get; try again in 10ms" {
			t.Errorf("got %+v", got)
		}
		time.Sleep(10 * time.Millisecond) // as it was told
		if got := execute(t, set, call("web_get", "")); !got.OK {
			t.Errorf("when it was told: %+v", got)
		}
	})
}

func TestRateLimitRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern string
		rate    float64
		burst   int
	}{{"", 1, 1}, {" ", 1, 1}, {"a", 0, 1}, {"a", -1, 1}, {"a", 1, 0}} {
		if _, err := executor.RateLimit(tt.pattern, tt.rate, tt.burst); err == nil {
			t.Errorf("%+v: no error", tt)
		}
	}
}

// A rate so low that nobody lives to see the next call says so, and not that it is to be tried again at once.
func TestRateLimitNextToNothing(t *testing.T) {
	t.Parallel()
	limit, err := executor.RateLimit("*", 1e-12, 1)
	if err != nil {
		t.Fatal(err)
	}
	set := quiet(t, says("web_get", "ok")).With(limit)
	execute(t, set, call("web_get", ""))
	if got := execute(t, set, call("web_get", "")); got.Type != schema.RateLimited || !strings.Contains(got.Output, "try again in 1281023h") {
		t.Errorf("got %+v", got)
	}
}
