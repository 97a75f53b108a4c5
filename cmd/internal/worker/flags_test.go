package worker

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

func TestQueue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Queue{
		"files": {"files", defaultSlots}, "shell=1": {"shell", 1}, "a-b_1=4096": {"a-b_1", 4096},
		"": {}, "=3": {}, "Files": {}, "files=0": {}, "files=-1": {}, "files=4097": {}, "files=x": {}, "files=": {}, "none": {}, "a.b": {},
	} {
		var q Queue
		err := q.UnmarshalText([]byte(text))
		if want == (Queue{}) {
			if err == nil {
				t.Errorf("%q: read as %+v", text, q)
			}
		} else if err != nil || q != want {
			t.Errorf("%q: %+v, %v; want %+v", text, q, err, want)
		}
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	const bad = time.Duration(-1)
	for text, want := range map[string]Delay{
		"50ms": {50 * time.Millisecond, 50 * time.Millisecond}, "0-50ms": {0, 50 * time.Millisecond},
		"10ms-1s": {10 * time.Millisecond, time.Second}, "5-7s": {5 * time.Second, 7 * time.Second}, "0": {}, "0s-0s": {},
		"": {bad, bad}, "50": {bad, bad}, "2s-1s": {bad, bad}, "-5ms": {bad, bad}, "1s-": {bad, bad}, "1s-2s-3s": {bad, bad}, "soon": {bad, bad},
	} {
		var d Delay
		err := d.UnmarshalText([]byte(text))
		if want.Min == bad {
			if err == nil {
				t.Errorf("%q: read as %v", text, d)
			}
			continue
		}
		if err != nil || d != want {
			t.Errorf("%q: %v, %v; want %v", text, d, err, want)
		}
		var again Delay
		if err := again.UnmarshalText([]byte(d.String())); err != nil || again != d {
			t.Errorf("%q: written as %q, read as %v, %v", text, d.String(), again, err)
		}
	}
}

func TestShare(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		"1%": 0.01, "0.5%": 0.005, "100%": 1, "0": 0, "0.25": 0.25, "1": 1,
		"": -1, "2": -1, "101%": -1, "-1%": -1, "NaN": -1, "%": -1,
	} {
		var s Share
		err := s.UnmarshalText([]byte(text))
		switch {
		case want < 0 && err == nil:
			t.Errorf("%q: read as %v", text, s)
		case want >= 0 && (err != nil || math.Abs(float64(s)-want) > 1e-12):
			t.Errorf("%q: %v, %v; want %v", text, s, err, want)
		case want >= 0:
			var again Share
			if err := again.UnmarshalText([]byte(s.String())); err != nil || again != s {
				t.Errorf("%q: written as %q, read as %v, %v", text, s.String(), again, err)
			}
		}
	}
}

func TestDiceAreThoseOfTheAttempt(t *testing.T) {
	t.Parallel()
	call := &schema.Call{Run: "r1", Agent: "a", Turn: 2, Index: 3}
	other := &schema.Call{Run: "r2", Agent: "a", Turn: 2, Index: 3} // another run of the same transcript
	first := dice(1, call, 1).Uint64()
	if dice(1, other, 1).Uint64() != first {
		t.Error("another run has other dice")
	}
	for name, r := range map[string]uint64{
		"seed": dice(2, call, 1).Uint64(), "delivery": dice(1, call, 2).Uint64(),
		"turn":  dice(1, &schema.Call{Agent: "a", Turn: 3, Index: 3}, 1).Uint64(),
		"index": dice(1, &schema.Call{Agent: "a", Turn: 2, Index: 2}, 1).Uint64(),
		"agent": dice(1, &schema.Call{Agent: "b", Turn: 2, Index: 3}, 1).Uint64(),
	} {
		if r == first {
			t.Errorf("another %s has the same dice", name)
		}
	}
	for n := range uint64(1000) {
		if d := (Delay{1, 3}).in(dice(n, call, 1)); d < 1 || d > 3 {
			t.Fatalf("delay %d is out of its range", d)
		}
	}
}

func TestAtMost(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]AtMost{
		"bash=2": {"bash", 2}, "a=b=3": {"a=b", 3}, "bash": {}, "=2": {}, "bash=0": {}, "bash=-1": {}, "bash=x": {}, "bash=": {}, "bash=99999999": {},
	} {
		var a AtMost
		if err := a.UnmarshalText([]byte(text)); (err != nil) != (want == AtMost{}) || err == nil && a != want {
			t.Errorf("%q: %+v, %v; want %+v", text, a, err, want)
		}
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Pace{
		"web_*=5/s": {"web_*", 5, 5}, "bash=30/m": {"bash", 0.5, 1}, "bash=30/m:4": {"bash", 0.5, 4}, "bash=7200/h": {"bash", 2, 2}, "a=b=1.5/s": {"a=b", 1.5, 1},
		"bash": {}, "=1/s": {}, "bash=5": {}, "bash=5/d": {}, "bash=0/s": {}, "bash=-1/s": {}, "bash=NaN/s": {}, "bash=Inf/s": {}, "bash=1/s:0": {}, "bash=1/s:": {},
	} {
		var p Pace
		if err := p.UnmarshalText([]byte(text)); (err != nil) != (want == Pace{}) || err == nil && p != want {
			t.Errorf("%q: %+v, %v; want %+v", text, p, err, want)
		}
	}
}

// TestOwnQueue: the queue of a limited tool is a legal one, and that of no other tool.
func TestOwnQueue(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 80)
	seen := map[string]string{}
	for _, tool := range []string{"bash", "Bash", "bAsh", "no.dots", "no_dots", "no/dots", "管理", "管道", long + "a", long + "b"} {
		name := schema.LimitedQueue("mcp-shop", tool)
		if err := schema.CheckQueue(name); err != nil || !strings.HasPrefix(name, "mcp-shop-") || seen[name] != "" {
			t.Errorf("%q: %q, %v, also of %q", tool, name, err, seen[name])
		}
		seen[name] = tool
	}
	if seen["mcp-shop-bash"] != "bash" {
		t.Errorf("%v: a name that fits stays", seen)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	tools := []schema.Tool{{Name: "bash"}, {Name: "web_get"}}
	for name, tt := range map[string]struct {
		limits []AtMost
		paces  []Pace
		want   string
	}{
		"all there":       {[]AtMost{{"bash", 1}}, []Pace{{"web_*", 1, 1}, {"*", 1, 1}}, ""},
		"a limit twice":   {[]AtMost{{"bash", 1}, {"bash", 1}}, nil, `limit of "bash" is given twice`},
		"a limit unmet":   {[]AtMost{{"ba*", 1}}, nil, `limit of "ba*": no tool of that name is served here; there are bash, web_get`},
		"a rate unmet":    {nil, []Pace{{"wob_*", 1, 1}}, `rate of "wob_*": it means no tool`},
		"a blank pattern": {nil, []Pace{{" ", 1, 1}}, "the pattern is blank"},
	} {
		b, err := newBounds(tt.limits, tt.paces, nil)
		if err == nil {
			err = b.unmet(tools)
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
