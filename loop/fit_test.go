package loop

import (
	"strings"
	"testing"

	"github.com/jetcrew/jetcrew/schema"
)

func TestB15FitRefusesWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	long := schema.JSONText(strings.Repeat("x", schema.MaxPayload))
	for name, tt := range map[string]struct {
		sizes []int  // MiB of arguments, by call
		want  string // L: refused as too large, .: goes on
	}{
		"small":            {[]int{1, 2, 3}, "..."},
		"one too large":    {[]int{1, 64, 3}, ".L."},
		"at its bound":     {[]int{63}, "."},
		"above its bound":  {[]int{64}, "L"},
		"all but too many": {[]int{16, 17, 18, 15}, "..L."},
		"far too many":     {[]int{20, 20, 20, 20, 23}, "L...L"},
	} {
		t.Run(name, func(t *testing.T) {
			turn := &schema.Turn{N: 1}
			for _, mib := range tt.sizes {
				turn.Calls = append(turn.Calls, schema.TurnCall{
					Args: long[:mib<<20], Decision: schema.Decision{Action: schema.ActionAllow},
				})
			}
			fit(turn)
			got := ""
			for _, c := range turn.Calls {
				switch {
				case c.Decision.Action == schema.ActionAllow:
					got += "."
				case c.Decision.Type == schema.TooLarge && c.Args == "{}" && len(c.Raw) <= maxRaw:
					got += "L"
				}
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
