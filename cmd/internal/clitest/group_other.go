//go:build !unix

package clitest

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func interruptGroup(cmd *exec.Cmd) error { return cmd.Process.Signal(os.Interrupt) }
