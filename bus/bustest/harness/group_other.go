//go:build !unix

package harness

import (
	"errors"
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func suspend(*os.Process) error { return errors.ErrUnsupported }

func resume(*os.Process) error { return errors.ErrUnsupported }

func interruptGroup(cmd *exec.Cmd) error { return cmd.Process.Signal(os.Interrupt) }
