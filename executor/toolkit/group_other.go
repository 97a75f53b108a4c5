//go:build !unix

package toolkit

import (
	"errors"
	"syscall"
)

const hasGroups = false

func newGroup() *syscall.SysProcAttr { return nil }

func killGroup(int) error { return errors.ErrUnsupported }
