//go:build unix

package mcp

import (
	"os/exec"
	"syscall"
)

// newGroup makes a command the leader of a process group of its own.
func newGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills every process of the group that the command leads. It must not be called after the command is reaped:
// its id may be another's then.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // an error means that nobody is left
