package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
)

// framed returns what a live view draws after n events of the script.
func framed(n, width, height int) string {
	b := &board{}
	l := lines{board: b, name: func(id string) string { return id }, width: func() int { return width }}
	for _, e := range script()[:n] {
		e.Time = time.Now()
		b.apply(e)
	}
	return l.frame(width, height)
}

func TestFrameFitsTheTerminal(t *testing.T) {
	t.Parallel()
	for n := range script() {
		for _, size := range [][2]int{{200, 50}, {80, 24}, {40, 6}, {20, 3}} {
			for line := range strings.Lines(framed(n, size[0], size[1])) {
				if w := ansi.StringWidth(strings.TrimSuffix(line, "\n")); w > size[0] {
					t.Errorf("after %d events at %v: %d columns: %q", n, size, w, line)
				}
			}
		}
	}
}

func TestFrameSaysHowCallsStand(t *testing.T) {
	t.Parallel()
	tests := []struct {
		events int
		want   []string
	}{
		{1, nil},
		{3, []string{"turn 1", "asking the model"}},
		{4, []string{"asking the model again", "503"}},
		{5, []string{"Let me"}},
		{10, []string{"1.0 watch_files", "watching", "1.1 list_files", "Let me look."}},
		{12, []string{"1.1 list_files {}", "worker-b · 4 ms · came 2nd, waits for 1.0"}},
		{14, []string{"worker-c · 3.0 s · delivery 2 · came 3rd · no change"}},
		{17, nil},
	}
	for _, tt := range tests {
		got := framed(tt.events, 120, 30)
		if len(tt.want) == 0 && got != "" {
			t.Errorf("after %d events: %q, want nothing", tt.events, got)
		}
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("after %d events: no %q in\n%s", tt.events, want, got)
			}
		}
	}
}

func TestFrameOfManyCalls(t *testing.T) {
	t.Parallel()
	b := &board{}
	b.apply(loop.Event{Type: loop.EventStepStart, Turn: 1, Time: time.Now()})
	for i := range 64 {
		b.apply(loop.Event{Type: loop.EventToolCall, Turn: 1, Time: time.Now(), Call: &loop.CallInfo{Index: i, Tool: "t", Args: schema.JSONText(fmt.Sprintf(`{"i":%d}`, i))}})
	}
	l := lines{board: b, name: ShortID, width: func() int { return 80 }}
	got := strings.Split(l.frame(80, 10), "\n")
	if len(got) > 9 || !strings.Contains(got[len(got)-1], "57 more") {
		t.Errorf("%d lines, the last %q; want at most 9 and how many are left out", len(got), got[len(got)-1])
	}
}

func TestCompactionLines(t *testing.T) {
	t.Parallel()
	l := lines{board: &board{}, name: ShortID, width: func() int { return 80 }}
	info := &loop.CompactionInfo{Strategy: "window", Trigger: "max_turns", UpTo: 12, Tokens: 800}
	for want, e := range map[string]loop.Event{
		"  compact turns 1 to 12, window; about 800 tokens are left": {Type: loop.EventCompactionEnd, Compaction: info},
		"  compact not done: no such host":                           {Type: loop.EventCompactionEnd, Compaction: info, Error: "no such\nhost"},
	} {
		for _, got := range [][]string{l.each(e), l.settled(e)} {
			if len(got) != 1 || got[0] != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
}
