package toolkit

import (
	"errors"

	"golang.org/x/sys/unix"
)

// endGroup waits until the child pid has ended and kills what is left of the group it led. It leaves the child to be
// reaped: until then its process id, which is the group's too, cannot become another's.
func endGroup(pid int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	_ = killGroup(pid) // an error means that nobody is left
}
