package mcp

import (
	"errors"

	"golang.org/x/sys/unix"
)

// awaitExit waits until a child has ended, without reaping it: until then its group can be killed by its id.
func awaitExit(pid int) bool {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	return true
}
