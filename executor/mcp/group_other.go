//go:build !unix

package mcp

import (
	"os/exec"
	"syscall"
)

func newGroup() *syscall.SysProcAttr { return nil }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // an error means that it has ended
