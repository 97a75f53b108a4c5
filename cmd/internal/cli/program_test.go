package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestExitCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		signal int
		want   int
	}{
		"done":                     {nil, 0, 0},
		"done after a signal":      {nil, 143, 0},
		"failed":                   {errors.New("x"), 0, 1},
		"failed, has said so":      {ErrFailed, 0, 1},
		"usage":                    {Usagef("bad %s", "flag"), 0, 2},
		"usage, wrapped":           {fmt.Errorf("run: %w", Usagef("bad flag")), 0, 2},
		"interrupted":              {fmt.Errorf("run: %w", context.Canceled), 130, 130},
		"failed after a signal":    {errors.New("x"), 143, 143},
		"own code after a signal":  {ErrFailed, 130, 1},
		"cancelled without signal": {context.Canceled, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (Program{Name: "test"}).exitCode(c.err, c.signal); got != c.want {
				t.Errorf("code %d, want %d", got, c.want)
			}
		})
	}
}

func TestExitCodeOfSignals(t *testing.T) {
	t.Parallel()
	for sig, want := range map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		if got := exitCodeOf(sig); got != want {
			t.Errorf("%v: code %d, want %d", sig, got, want)
		}
	}
}

func TestUsagefKeepsTheCause(t *testing.T) {
	t.Parallel()
	if err := Usagef("open: %w", os.ErrNotExist); !errors.Is(err, os.ErrNotExist) || err.Error() != "open: "+os.ErrNotExist.Error() {
		t.Error(err)
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\n\ttext ü 東": "plain\n\ttext ü 東", "\x1b[2Jgone\r\x07": "[2Jgone", "\u009b31mx\x7f": "31mx",
	} {
		if got := Printable(in); got != want {
			t.Errorf("Printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if Version() == "" || !strings.HasPrefix(versionLine("x"), "x "+Version()) {
		t.Errorf("version %q, line %q", Version(), versionLine("x"))
	}
	settings := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}
	if got := develVersion(settings); got != "devel-0123456789ab-modified" {
		t.Error(got)
	}
}
