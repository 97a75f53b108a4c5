//go:build unix

package harness

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup puts a process and its children into a group of their own, as a shell does with a job.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// interruptGroup sends an interrupt to the group, as a terminal does.
func interruptGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
