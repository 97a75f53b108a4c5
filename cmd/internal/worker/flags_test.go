package worker

import (
	"math"
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
