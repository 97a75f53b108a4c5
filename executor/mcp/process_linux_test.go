package mcp_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/jetcrew/jetcrew/schema"
)

// TestProcessGroup: what a server started ends with it.
func TestProcessGroup(t *testing.T) {
	t.Parallel()
	c := connect(t, stdio(t))
	pid, err := strconv.Atoi(c.do(t.Context(), "shop_spawn", `{}`).Output)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000); n != 1 {
		t.Errorf("process %d outlives its server: %v", pid, err)
	}
}

// TestD31ProcessDies: a call of a process that dies is settled, and the next one has a new process.
func TestD31ProcessDies(t *testing.T) {
	t.Parallel()
	c := connect(t, stdio(t))
	for range 3 {
		if r := c.do(t.Context(), "shop_die", `{}`); r.OK || r.Error == nil || r.Error.Type != schema.OutcomeUnknown {
			t.Errorf("die: %+v", r)
		}
		<-c.Changed()
		c.want("shop_echo", `{"n":1}`, `{"n":1}`)
	}
}

// TestD28Environment: a server gets the variables that are allowed, passed or set, and no others.
func TestD28Environment(t *testing.T) {
	t.Setenv("JETCREW_TEST_SECRET", "s")
	t.Setenv("JETCREW_TEST_PASSED", "p")
	cfg := stdio(t)
	cfg.Pass = []string{"JETCREW_TEST_PASSED", "JETCREW_TEST_ABSENT"}
	r := connect(t, cfg).do(t.Context(), "shop_environment", `{}`)
	lines := strings.Split(r.Output, "\n")
	if strings.Contains(r.Output, "SECRET") || !slices.Contains(lines, "JETCREW_TEST_PASSED=p") || !slices.Contains(lines, asServer+"=1") || !strings.Contains(r.Output, "PATH=") {
		t.Errorf("environment:\n%s", r.Output)
	}
}
