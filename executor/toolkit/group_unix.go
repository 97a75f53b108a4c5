//go:build unix

package toolkit

import (
	"errors"
	"os"
	"syscall"
)

const hasGroups = true

// newGroup makes a command the leader of a process group of its own.
func newGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills every process of the group that pid leads; os.ErrProcessDone if there is none.
func killGroup(pid int) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
